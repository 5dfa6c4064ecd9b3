#pragma once

#include <zkasio/client.hpp>
#include <zkasio/locks/acquire_options.hpp>
#include <zkasio/locks/detail/lock_queue.hpp>
#include <zkasio/locks/lock_guard.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zkasio::lock_detail {

/// One place in the queue of a lock, for as long as this lives: whatever happens, the node is removed in the end.
class queue_claim final : public lock_claim {
public:
    /// Joins the queue. @param from where the contender's coroutine runs.
    queue_claim(session on, acquire_request what, asio::any_io_executor from);
    /// The same with a node that exists already: `path`.
    queue_claim(session on, acquire_request what, asio::any_io_executor from, std::string path);
    queue_claim(const queue_claim&) = delete;
    queue_claim& operator=(const queue_claim&) = delete;
    ~queue_claim() override { give_up(); }

    /// *Completes when* it is decided; then ask granted(). *Fails with* client_closed.
    asio::awaitable<void> decided() const { return who_->decided.wait(); }
    /// Whether it was granted, or else refused. Throws what has gone wrong.
    bool granted();

    const session_hold& hold() const noexcept override { return *who_->hold; }
    const std::vector<std::string>& paths() const noexcept override { return paths_; }
    const session& on() const noexcept override { return on_; }
    std::int64_t token() const noexcept override { return who_->czxid; }
    void give_up() noexcept override;
    asio::awaitable<void> gone() override;
    void body_begins(asio::any_io_executor executor) override;
    void body_ends(asio::any_io_executor executor) noexcept override;

    const acquire_request& asked() const noexcept { return who_->asked; }
    /// Once it is decided: refused because its place was lost, see acquire_request::lost.
    bool displaced() const noexcept { return who_->displaced; }

    /// A claim at the same place that shares the lock, and shows as `as` says; this one is given up when that is granted.
    asio::awaitable<std::shared_ptr<queue_claim>> downgrade(lock_spec_ptr as);

private:
    queue_claim(session on, acquire_request what);

    session on_;
    contender_ptr who_;
    std::vector<std::string> paths_;
    std::optional<one_shot_event> gone_;
    bool granted_ = false;
    bool given_up_ = false;
};

/// Queues for the lock and waits for its turn. Null when it is not the first and is asked not to wait.
///
/// The algorithm is ZooKeeper's lock recipe as Curator runs it (StandardLockInternalsDriver): a contender watches only
/// its immediate predecessor (a reader: the last writer ahead). What lock_queue adds: contenders of one session share listings
/// and watches, and hand over to each other without any.
///
/// *Fails with* what operations fail with; errc::session_expired when the session ends while waiting.
/// *Cancellation*: leaves no node and no watch behind.
/// @tparam Result a pointer to the lock_claim, a lock_guard, or an optional one: every coroutine more is memory for each who
/// waits.
template <class Result>
asio::awaitable<Result> contend(client zk, acquire_request what);

/// The same for the owner that `how` names, if it does, and with its observer.
template <class Result>
asio::awaitable<Result> contend(client zk, acquire_request what, acquire_options how);

/// Nothing for null.
std::optional<lock_guard> to_guard(std::shared_ptr<lock_claim> claim);

/// Waits until the lease covers what was granted. False: it was lost before that, and the session lives: start over.
asio::awaitable<bool> covered(std::shared_ptr<lock_claim> claim);

/// What comes from an attempt that never ends with nothing.
asio::awaitable<lock_guard> always(asio::awaitable<std::optional<lock_guard>> attempt);

/// Throws errc::invalid_path when `path` cannot be the directory of a lock.
void check_directory(std::string_view recipe, const std::string& path);

}  // namespace zkasio::lock_detail
