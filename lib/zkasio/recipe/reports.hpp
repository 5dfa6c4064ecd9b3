#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/client_observer.hpp>
#include <zkasio/error.hpp>
#include <zkasio/export.hpp>
#include <zkasio/log_record.hpp>
#include <zkasio/operations.hpp>
#include <zkasio/recipe/toolbox.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

/// For writers of recipes: reports for client_observer and client::stats().
namespace zkasio {

/// Sends a report. The report carries the path only if there is an observer: a path costs memory.
template <class Report>
void send_report(const operations& on, Report r, const std::string& path) noexcept {
    const toolbox tools(on);
    if (tools.has_observer()) r.path = path;
    tools.report(r);
}

/// The code of a failure, for its report; none for null. An exception without a code becomes
/// std::errc::operation_canceled.
ZKASIO_EXPORT std::error_code failure_of(const std::exception_ptr& failed) noexcept;

/// The report of a commit that begins now.
inline commit_report begin_commit(commit_kind kind) noexcept {
    commit_report r;
    r.kind = kind;
    r.asked = boot_clock::now();
    return r;
}

/// Reports that a commit has ended now. @param path of the structure. @param failed null: it has succeeded.
ZKASIO_EXPORT void report_commit(const operations& on, commit_report r, const std::string& path,
                                 const std::exception_ptr& failed) noexcept;

/// Runs a commit, and reports it when it has ended.
/// *Lifetime*: `r`, to which the commit may add what it meets, outlives the call.
template <class T>
asio::awaitable<T> reported_commit(asio::awaitable<T> commit, operations on, std::string path, commit_report& r) {
    if (!commit.valid()) throw error(errc::invalid_argument, "reported_commit", path, "the operation is empty");
    std::exception_ptr failed;
    if constexpr (std::is_void_v<T>) {
        try {
            co_await std::move(commit);
        } catch (...) {
            failed = std::current_exception();
        }
        report_commit(on, r, path, failed);
        if (failed) std::rethrow_exception(failed);
    } else {
        std::optional<T> result;
        try {
            T value = co_await std::move(commit);
            result.emplace(std::move(value));
        } catch (...) {
            failed = std::current_exception();
        }
        report_commit(on, r, path, failed);
        if (failed) std::rethrow_exception(failed);
        co_return std::move(*result);
    }
}

/// Logs a line to client_options::log(), at log_level::warning. From any thread; does nothing with a moved-from client
/// or session. For writers of recipes.
ZKASIO_EXPORT void log_warning(const client& zk, std::string text, std::vector<log_field> fields = {});
ZKASIO_EXPORT void log_warning(const session& on, std::string text, std::vector<log_field> fields = {});

}  // namespace zkasio
