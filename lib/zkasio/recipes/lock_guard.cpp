#include <zkasio/recipes/lock_guard.hpp>

#include <utility>

namespace zkasio {

lock_guard& lock_guard::operator=(lock_guard&& other) noexcept {
    if (this != &other) {
        give_up();
        on_ = std::move(other.on_);
        hold_ = std::move(other.hold_);
        path_ = std::move(other.path_);
        token_ = other.token_;
    }
    return *this;
}

// A node of a session that is over is gone with it, so nothing that happens to the removal needs attention.
std::optional<pending_removal> lock_guard::give_up() noexcept {
    if (path_.empty()) return std::nullopt;
    hold_.end(true);
    const std::string path = std::exchange(path_, {});
    try {
        return on_.ensure_removed(path);
    } catch (...) {
        return std::nullopt;  // out of memory
    }
}

asio::awaitable<void> lock_guard::release() {
    const std::optional<pending_removal> removal = give_up();
    if (!removal) co_return;
    try {
        co_await removal->result();
    } catch (const error& e) {
        if (e.code() != condition::session_ended) throw;
    }
}

asio::awaitable<std::vector<step_result>> lock_guard::commit(transaction steps) const {
    const std::string path = path_;
    if (path.empty()) throw error(errc::lock_released, "commit");
    if (!held()) {
        const loss_reason why = reason();
        throw error(errc::lock_lost, "commit", path, to_string(why == loss_reason::none ? loss_reason::lease_ended : why));
    }
    transaction fenced;
    fenced.check(path);
    fenced.append(std::move(steps));
    std::vector<step_result> results;
    try {
        results = co_await on_.multi(std::move(fenced));
    } catch (const error& e) {
        const bool node_gone = e.code() == zk_errc::no_node && e.path() == path;
        if (!node_gone && e.code() != errc::session_expired) throw;
        throw error(errc::lock_lost, "commit", path, to_string(node_gone ? loss_reason::node_deleted : loss_reason::session_expired),
                    e.outcome_unknown());
    }
    results.erase(results.begin());  // of the check
    co_return results;
}

asio::awaitable<void> lock_guard::run(std::function<asio::awaitable<void>()> body) const {
    const std::string path = path_;
    if (path.empty()) throw error(errc::lock_released, "run");
    std::exception_ptr failed;
    try {
        co_await hold_.run(std::move(body));
    } catch (...) {
        failed = std::current_exception();
    }
    // A body may release the lock itself: then there is nothing to complain about.
    const loss_reason why = hold_.reason();
    if (why != loss_reason::none && why != loss_reason::released) throw error(errc::lock_lost, "with_lock", path, to_string(why));
    if (failed) std::rethrow_exception(failed);
}

}  // namespace zkasio
