#include <zkasio/recipe/reports.hpp>

#include <zkasio/detail/client/await.hpp>
#include <zkasio/detail/handles/access.hpp>
#include <zkasio/error.hpp>

#include <utility>

namespace zkasio {

failure failure_of(const std::exception_ptr& failed) noexcept {
    if (!failed) return {};
    try {
        std::rethrow_exception(failed);
    } catch (const error& e) {
        return {e.code(), e.outcome_unknown()};
    } catch (const std::system_error& e) {
        return {e.code(), false};
    } catch (...) {
        return {std::make_error_code(std::errc::operation_canceled), false};
    }
}

void report_commit(const operations& on, commit_report r, const std::string& path,
                   const std::exception_ptr& failed) noexcept {
    const failure why = failure_of(failed);
    r.code = why.code;
    r.outcome_unknown = why.outcome_unknown;
    r.ended = boot_clock::now();
    send_report(on, std::move(r), path);
}

namespace {

void warn(const detail::core_ptr& core, std::string text, std::vector<log_field> fields) {
    if (!core) return;
    detail::on_strand(core,
                      [core, text = std::move(text), fields = std::move(fields)] { core->log().warn(text, fields); });
}

}  // namespace

void log_warning(const client& zk, std::string text, std::vector<log_field> fields) {
    warn(detail::access::core_of(zk), std::move(text), std::move(fields));
}
void log_warning(const session& on, std::string text, std::vector<log_field> fields) {
    warn(detail::access::core_of(on), std::move(text), std::move(fields));
}

}  // namespace zkasio
