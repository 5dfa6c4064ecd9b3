#include <zkasio/locks/detail/lock_reports.hpp>

#include <zkasio/recipe/reports.hpp>

#include <exception>
#include <utility>

namespace zkasio::lock_detail {
namespace {

loss_reason loss_of(loss_reason how) noexcept { return how == loss_reason::released ? loss_reason::none : how; }

}  // namespace

void report_wait(const session& on, const std::string& lock, contender& c) noexcept {
    if (c.asked.keeps_place || c.asked.reported_by_user) return;  // reported as a whole, or in parts
    lock_wait_report r;
    r.kind = c.asked.kind;
    r.code = failure_of(c.failed);
    r.refused = c.outcome == acquire_outcome::refused;
    if (c.outcome == acquire_outcome::granted) {
        r.token = c.czxid;
        r.from = c.came_from();
    }
    r.queue_length = c.queue_length;
    r.asked = std::exchange(c.since, boot_clock::now());
    r.ended = c.since;
    send_report(on, r, lock);
}

void report_hold(const session& on, const std::string& lock, const contender& c) noexcept {
    if (c.asked.keeps_place || c.asked.reported_by_user) return;
    lock_hold_report r;
    r.kind = c.asked.kind;
    r.token = c.czxid;
    r.lost = loss_of(c.hold.reason());
    r.granted = c.since;
    r.ended = boot_clock::now();
    send_report(on, r, lock);
}

reported_hold::reported_hold(const session& on, std::string lock, std::int64_t token, boot_clock::time_point asked)
    : on_(on), lock_(std::move(lock)), token_(token) {
    lock_wait_report r;
    r.token = token_;
    r.asked = asked;
    r.ended = granted_;
    send_report(on_, r, lock_);
}

void reported_hold::end(loss_reason how) const noexcept {
    lock_hold_report r;
    r.token = token_;
    r.lost = loss_of(how);
    r.granted = granted_;
    r.ended = boot_clock::now();
    send_report(on_, r, lock_);
}

asio::awaitable<std::optional<lock_guard>> reported(asio::awaitable<std::optional<lock_guard>> attempt, client zk,
                                                    std::string path) {
    lock_wait_report r;
    r.asked = boot_clock::now();
    std::exception_ptr failed;
    std::optional<lock_guard> guard;
    try {
        guard = co_await std::move(attempt);
    } catch (...) {
        failed = std::current_exception();
    }
    if (guard) co_return std::move(guard);
    r.code = failure_of(failed);
    r.refused = !failed;
    r.ended = boot_clock::now();
    send_report(zk, r, path);
    if (failed) std::rethrow_exception(failed);
    co_return std::nullopt;
}

void warn_of_guard(const session& on, const std::string& lock, const std::string& node) {
    log_warning(on,
                lock + ": an acquire has waited for 10 s or more for a lock_guard of this client, node " + node +
                    ": a coroutine that has the guard itself would wait for ever",
                {{"path", lock}, {"node", node}});
}

}  // namespace zkasio::lock_detail
