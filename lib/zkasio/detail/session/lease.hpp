#pragma once

#include <zkasio/clock.hpp>

#include <array>
#include <cstddef>

namespace zkasio::detail {

/// Until when a session is certain to live, as far as a client can know. Pure: times in, a time out.
///
/// Answers prove little: a follower that is cut off from its leader goes on answering reads and pings of a session that
/// the majority has long expired. The time at which the *leader* last heard of this client decides.
///   - The handshake goes to the leader, which heard of this client no earlier than the handshake was sent.
///   - A follower notes each request of a session, reads and pings too, before it answers, and reports what it has
///     noted in its answer to the leader's next ping, every half tick. Writes travel the same connection in order. So
///     the acknowledgement of a write that was sent at least half a tick after an earlier request was answered proves
///     that the leader has heard of that request: no earlier than the request was sent.
///
/// A request without an answer proves nothing, and neither does an answered request without a later write. Since only
/// answers and the times at which this client looked at them count, nothing has to be known about when this client was
/// able to send.
///
/// With a read every read_interval(), a write extends the lease to at least
///
///     T - half a tick - T/8 - T/64 - one round trip
///
/// after its sending. The next heartbeat is sent a renewal_interval() later, and then so much of the lease is left:
///
///     T - half a tick - T/8 - T/64 - one round trip - renewal_interval()
///
/// Half a tick is T/4 at most, so these are 0.36 T, 0.28 T and 0.11 T for T/4, T/3 and T/2, less a round trip. The
/// first write of a session with a read every idle_interval() only is worth T/8 less; the next heartbeat is sent
/// earlier, when reserve() is left: 0.31 T, 0.23 T and 0.06 T. So it is on a slow link: two round trips are left then.
class lease {
public:
    using duration = boot_clock::duration;
    using time_point = boot_clock::time_point;

    /// @param session_timeout as negotiated.
    explicit lease(duration session_timeout = duration::zero())
        : timeout_(session_timeout), half_tick_(session_timeout / 4) {}

    /// The connection was (re-)established by a handshake that was sent at `sent` or later.
    /// @param half_tick of the servers; zero: T/4, since T is at least two ticks unless the servers' minSessionTimeout
    /// says otherwise. @param renewals how often a lease is renewed in T: 4, 3 or 2, see renewal_interval().
    void connected(time_point sent, duration session_timeout, duration half_tick = duration::zero(), int renewals = 4);

    /// A server has answered a request, with success or not. `answered` may be late, never early.
    void answered(time_point sent, time_point answered);

    /// A write was acknowledged.
    void write_answered(time_point sent, time_point answered);

    /// The session is certain to live before this time.
    time_point end() const noexcept { return end_; }

    /// When the next heartbeat is due, if there is a hold. The time counts from the sending of the last acknowledged
    /// write, so that the heartbeat's answer still comes in time on a slow link. A lease that has less left than it
    /// ever has while the connection works is renewed as soon as that is possible: after a silent time, the first write
    /// proves nothing, and the next one would come just too early, or late.
    time_point heartbeat_due() const noexcept;

    /// From when on a write extends the lease; any time, if no answered request could extend it.
    time_point renewable_from() const noexcept;

    duration session_timeout() const noexcept { return timeout_; }
    /// From the sending of an acknowledged write to the next heartbeat.
    duration renewal_interval() const noexcept { return timeout_ / renewals_; }

    /// After so long without another request, the client sends a read of its own.
    duration read_interval() const noexcept { return timeout_ / 8; }
    /// The same for a session without holds: often enough for a lock whose round trips take 0.15 T.
    duration idle_interval() const noexcept { return timeout_ / 4; }

private:
    struct request {
        time_point sent, answered;
    };
    time_point end_if_heard(time_point at) const noexcept {
        return at + timeout_ - timeout_ / 1000;
    }  // clocks differ by far less
    /// The longest time between two reports of a follower: half a tick, and a little for a leader and a network that
    /// are late.
    duration report_interval() const noexcept { return half_tick_ + timeout_ / 64; }

    /// What is left of a lease when a heartbeat is sent, at least, if the lease can be renewed by then: enough for two
    /// round trips.
    duration reserve() const noexcept;

    duration timeout_, half_tick_;
    duration round_trip_{};  // of the latest write
    int renewals_ = 4;
    time_point end_{};
    time_point last_write_{};
    // Answered requests that a later write may prove, in the order of their sending: the newest, and before it no more
    // than are needed for gaps of T/16. Any two gaps together are longer than that, so the requests reach back for T/2
    // at least.
    std::array<request, 16> recent_{};
    std::size_t count_ = 0;
};

/// Half a tick for lease::connected().
///
/// @param tick as configured for the client; zero: not known. Servers that grant more than was asked for have applied
/// their minimum, which is two ticks unless they are configured otherwise: then a shorter tick is not believed.
lease::duration half_tick(lease::duration tick, lease::duration asked_for, lease::duration granted) noexcept;

}  // namespace zkasio::detail
