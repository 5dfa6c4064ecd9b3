#pragma once

#include <zkasio/clock.hpp>

#include <chrono>
#include <cstddef>

namespace zkasio::detail {

/// How long to wait before the next attempt to connect, and how long an attempt may take. Pure.
class connection_pacing {
public:
    using duration = boot_clock::duration;

    /// The number of servers in the list, which is tried in rounds; at least 1.
    void set_servers(std::size_t count) noexcept { servers_ = static_cast<int>(count > 0 ? count : 1); }

    /// A handshake was answered. That alone proves little: a server may answer it, hang up, and do so again.
    void connected() noexcept { failed_ = unanswered_handshakes_ = failed_logins_ = 0; }
    /// A server has answered a request, or there are other servers now.
    void reset() noexcept { failed_ = unanswered_handshakes_ = failed_logins_ = useless_ = 0; }
    void attempt_failed() noexcept { ++failed_; }
    /// A connection, or a session, has ended before a server has answered a request.
    void was_useless() noexcept { ++useless_; }
    int useless() const noexcept { return useless_; }
    static constexpr int many = 5;
    void login_failed() noexcept { ++failed_logins_; }
    void handshake_unanswered() noexcept { ++unanswered_handshakes_; }

    /// A connection that has lasted so long was of use, even if nothing was asked for.
    static constexpr duration longest = std::chrono::seconds(10);

    /// The pause before an attempt: short in the first round of the list, then ever longer, up to a second. After
    /// connections that were useless it doubles up to `longest` for each server: each of them costs the servers a
    /// handshake, which is a write if it opens a session. @param random [0, 1).
    duration pause(double random) const noexcept;
    /// The pause behind a login that has failed: doubles as well. It may have cost a server, or a KDC, as much.
    duration pause_after_login(double random) const noexcept;
    /// The pause before a session that follows another one: none, unless several were useless in a row.
    duration pause_of_next_session(double random) const noexcept {
        return useless_ > 1 ? doubled(useless_, random) : duration::zero();
    }
    /// The pause before a request with which so many connections in a row have ended is sent once more: 50 ms from
    /// `many` on, and twice as long with each further one, up to `longest`; and up to half as long again. Others use
    /// the connection in between.
    static duration pause_of_request(int connections, double random) noexcept;
    /// The pause before names that had no address are looked up again.
    duration look_up_pause(double random) const noexcept { return pause_after(failed_, 1, random); }

    /// As many attempts as there are servers have failed, or a multiple of that.
    bool round_over() const noexcept { return failed_ % servers_ == 0; }

    /// For connecting and for the answer to the handshake together. The handshake opens a session, a write of the whole
    /// ensemble: if all servers take longer than this, they get more time with each round, up to the C library's own
    /// limit.
    duration attempt_limit(duration session_timeout) const noexcept { return limit(session_timeout, 3 * servers_); }
    /// For a login and the answer to the handshake together, once a server has accepted the connection: a third of the
    /// session timeout, whatever the number of servers, since all of them may have to wait for the same KDC.
    duration login_limit(duration session_timeout) const noexcept { return limit(session_timeout, 3); }

private:
    duration limit(duration session_timeout, int share) const noexcept;
    static duration pause_after(int failed, int servers, double random) noexcept;
    duration doubled(int times, double random) const noexcept;

    int servers_ = 1;
    int failed_ = 0, unanswered_handshakes_ = 0, failed_logins_ = 0;  // since the last connection
    int useless_ = 0;                                                 // since the last reset
};

}  // namespace zkasio::detail
