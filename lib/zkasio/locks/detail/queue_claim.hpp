#pragma once

#include <zkasio/client_observer.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/locks/detail/queue/contender.hpp>
#include <zkasio/locks/lock_claim.hpp>
#include <zkasio/session.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zkasio::lock_detail {

/// One place in the queue of a lock, for as long as the claim lives. In every case the node is removed in the end.
class queue_claim final : public lock_claim {
public:
    /// Joins the queue. @param from the executor of the contender's coroutine.
    queue_claim(session on, acquire_request what, asio::any_io_executor from);
    queue_claim(const queue_claim&) = delete;
    queue_claim& operator=(const queue_claim&) = delete;
    ~queue_claim() override { give_up(); }

    /// *Completes when* the acquire is decided; then ask granted().
    /// *Fails with* errc::client_closed, and errc::forked in a child process.
    asio::awaitable<void> decided() const { return who_->decided.wait(); }
    /// Whether the lock was granted; false: refused. Throws the error of an acquire that has failed.
    bool granted();

    const session_hold& hold() const noexcept override { return who_->hold; }
    const std::vector<std::string>& paths() const noexcept override { return paths_; }
    const session& on() const noexcept override { return on_; }
    std::int64_t token() const noexcept override { return who_->czxid; }
    std::optional<std::int32_t> sequence() const noexcept override;
    void asked_back() noexcept override;
    void give_up() noexcept override;
    asio::awaitable<void> gone() override;
    void body_begins(asio::any_io_executor executor) override;
    void body_ends(asio::any_io_executor executor) noexcept override;

    /// Of a granted claim: from which contender the lock has come.
    hand_over came_from() const noexcept { return who_->came_from(); }
    const acquire_request& asked() const noexcept { return who_->asked; }

    /// A new claim at the same place, which shares the lock, and whose node has the data and the ACL of `as`. If the
    /// new claim is granted, this claim is given up.
    asio::awaitable<std::shared_ptr<queue_claim>> downgrade(lock_spec_ptr as);

private:
    queue_claim(session on, acquire_request what);

    session on_;
    contender_ptr who_;
    std::vector<std::string> paths_;  // empty until granted() has returned true
    std::unique_ptr<const one_shot_event> gone_;  // null for waiters, of which there may be very many
};

}  // namespace zkasio::lock_detail
