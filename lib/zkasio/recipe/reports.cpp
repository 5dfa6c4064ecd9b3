#include <zkasio/recipe/reports.hpp>

#include <zkasio/detail/client/await.hpp>
#include <zkasio/detail/handles/access.hpp>
#include <zkasio/error.hpp>

#include <utility>

namespace zkasio {

std::error_code failure_of(const std::exception_ptr& failed) noexcept {
    if (!failed) return {};
    try {
        std::rethrow_exception(failed);
    } catch (const std::system_error& e) {
        return e.code();
    } catch (...) {
        return std::make_error_code(std::errc::operation_canceled);
    }
}

namespace {

// Of the commit itself: what a body has thrown may have other writes nested.
bool may_be_applied(const std::exception_ptr& failed) noexcept {
    try {
        if (failed) std::rethrow_exception(failed);
    } catch (const error& e) {
        return e.outcome_unknown();
    } catch (...) {
    }
    return false;
}

}  // namespace

void report_commit(const operations& on, commit_report r, const std::string& path,
                   const std::exception_ptr& failed) noexcept {
    r.code = failure_of(failed);
    r.outcome_unknown = may_be_applied(failed);
    r.ended = boot_clock::now();
    send_report(on, std::move(r), path);
}

namespace {

// A log is the client's: a line about nodes of a view says where the view is.
void warn(const detail::core_ptr& core, detail::view_root root, std::string text, std::vector<log_field> fields) {
    if (!core) return;
    if (root) {
        text += " (below " + *root + ")";
        for (log_field& f : fields)
            if (f.key == "path") f.value = detail::whole_path(root, std::move(f.value));
        fields.push_back({"root", *root});
    }
    detail::on_strand(core,
                      [core, text = std::move(text), fields = std::move(fields)] { core->log().warn(text, fields); });
}

}  // namespace

void log_warning(const client& zk, std::string text, std::vector<log_field> fields) {
    warn(detail::access::core_of(zk), detail::access::root_of(zk), std::move(text), std::move(fields));
}
void log_warning(const session& on, std::string text, std::vector<log_field> fields) {
    warn(detail::access::core_of(on), detail::access::root_of(on), std::move(text), std::move(fields));
}

}  // namespace zkasio
