#pragma once

#include <zkasio/clock.hpp>

#include <cstddef>

namespace zkasio::detail {

/// How long to wait before the next attempt to connect, and how long an attempt may take. Pure.
class connection_pacing {
public:
    using duration = boot_clock::duration;

    /// The number of servers in the list, which is tried in rounds; at least 1.
    void set_servers(std::size_t count) noexcept { servers_ = static_cast<int>(count > 0 ? count : 1); }

    /// There is a connection, or the next attempt is for another session.
    void reset() noexcept { failed_ = unanswered_handshakes_ = 0; }
    void attempt_failed() noexcept { ++failed_; }
    void handshake_unanswered() noexcept { ++unanswered_handshakes_; }

    /// The pause before an attempt: short in the first round of the list, then ever longer. @param random [0, 1).
    duration pause(double random) const noexcept { return pause_after(failed_, servers_, random); }
    /// The pause before names that had no address are looked up again.
    duration look_up_pause(double random) const noexcept { return pause_after(failed_, 1, random); }

    /// As many attempts as there are servers have failed, or a multiple of that.
    bool round_over() const noexcept { return failed_ % servers_ == 0; }

    /// For connecting and for the answer to the handshake together. The handshake opens a session, a write of the whole
    /// ensemble: if all servers take longer than this, they get more time with each round, up to the C library's own
    /// limit.
    duration attempt_limit(duration session_timeout) const noexcept;

private:
    static duration pause_after(int failed, int servers, double random) noexcept;

    int servers_ = 1;
    int failed_ = 0, unanswered_handshakes_ = 0;  // since the last reset
};

}  // namespace zkasio::detail
