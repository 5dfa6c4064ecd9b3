#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/export.hpp>
#include <zkasio/loss_reason.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <string>

namespace zkasio {

namespace barrier_detail {
class barrier_member;
}

/// A member inside a double_barrier. Move-only; the destructor leaves, in the background.
///
/// *On session loss* the member is no longer inside: the other members do not wait for it, and it does not know when
/// they leave. held() is false before the servers can have given the member up, as far as a client can know.
///
/// *Lifetime*: until it has left, the entry keeps the client open, as a lock_guard does. It must not outlive the
/// execution context of its client. May be used from any executor; `held()` and `reason()` from any thread. The
/// coroutines of the members may be awaited when the object is gone. An entry that was made without arguments, or moved
/// from, counts as left.
class ZKASIO_EXPORT barrier_entry {
public:
    barrier_entry() noexcept = default;
    barrier_entry(barrier_entry&& other) noexcept = default;
    barrier_entry& operator=(barrier_entry&& other) noexcept;
    ~barrier_entry() { begin_to_leave(); }

    /// Whether the member is inside: it has not begun to leave, its session lives, and its node exists.
    bool held() const noexcept;
    /// loss_reason::none while the member is inside, loss_reason::released when it has begun to leave.
    loss_reason reason() const noexcept;
    /// *Completes when* the member is no longer inside, with the reason.
    asio::awaitable<loss_reason> lost() const;

    /// Leaves. From the call on, held() is false. A second call waits for the same end.
    /// *Completes when* all members that were inside at the beginning of the call have left, or are gone with their
    /// sessions. (A member that enters in the meantime, for the next round, is not waited for.) At once for an entry
    /// that was made without arguments or moved from.
    /// *Fails with* errc::session_expired when the session of this member ends first, or has ended: its node is gone
    /// then, and whether the others have left is unknown; with errc::client_closed, errc::forked; and with
    /// zk_errc::no_auth and other answers of the servers to the removal of a node. An outage that the session survives
    /// does not end the wait.
    /// *Cancellation*: ends the wait; the member goes on leaving, in the background.
    asio::awaitable<void> leave();

    /// Path of the member's node; "" for an empty entry.
    const std::string& path() const noexcept;

private:
    friend class double_barrier;
    barrier_entry(std::shared_ptr<barrier_detail::barrier_member> member, std::shared_ptr<const void> open) noexcept;
    void begin_to_leave() noexcept;

    std::shared_ptr<const void> open_;  // first, so destroyed last
    std::shared_ptr<barrier_detail::barrier_member> member_;
};

}  // namespace zkasio
