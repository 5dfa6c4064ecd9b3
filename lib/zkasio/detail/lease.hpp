#pragma once

#include <zkasio/clock.hpp>

#include <array>
#include <cstddef>

namespace zkasio::detail {

/// Until when a session is certain to live, as far as a client can know. Pure: times in, a time out.
///
/// Answers prove little: a follower that is cut off from its leader goes on answering reads and pings of a session
/// that the majority has long expired. What counts is when the *leader* last heard of us.
///   - The handshake goes to the leader: it heard of us no earlier than the handshake was sent.
///   - A follower reports the sessions it heard from in its answers to the leader's pings, every half tick. Writes
///     travel the same connection in order. So the acknowledgement of a write that was sent at least half a tick
///     after an earlier write was answered proves that the leader has heard of that earlier write.
///     A session timeout T is at least two ticks: half a tick is at most T/4.
///   - Before a second such write: the C client pings when idle for T/3, so the leader heard of us no earlier than
///     T/3 + T/4 (and a little, see ping_gap()) before the write was sent, provided that nothing kept us from pinging.
class lease {
public:
    using duration = boot_clock::duration;
    using time_point = boot_clock::time_point;

    /// @param session_timeout as negotiated.
    explicit lease(duration session_timeout = duration::zero()) : timeout_(session_timeout) {}

    /// The connection was (re-)established by a handshake that was sent at `sent` or later.
    void connected(time_point sent, duration session_timeout);

    /// A write was acknowledged.
    void write_answered(time_point sent, time_point answered);

    /// The event loop did not look at the connection from `from` to `to`, so that pings may be late.
    void stalled(time_point from, time_point to);

    /// The session is certain to live before this time.
    time_point end() const noexcept { return end_; }

    /// When the next heartbeat is due, if somebody relies on the lease.
    time_point heartbeat_due() const noexcept { return last_answer_ + timeout_ / 4; }

    duration session_timeout() const noexcept { return timeout_; }

    /// Longer than the C client stays silent when nothing holds it up: T/3, and a little for a busy loop.
    duration ping_gap() const noexcept { return timeout_ / 3 + timeout_ / 50; }

private:
    struct write {
        time_point sent, answered;
    };
    void extend(time_point heard) noexcept;

    duration timeout_;
    time_point end_{};
    time_point last_answer_{};
    struct stall {
        time_point from, to;
    };
    std::array<stall, 8> stalls_{};
    std::size_t stall_count_ = 0;
    // Answered writes that may still be the "earlier write" of a later one; a sixteenth of T apart is fine enough.
    std::array<write, 8> recent_{};
    std::size_t count_ = 0;
};

}  // namespace zkasio::detail
