#pragma once

#include "simulation/sim_names.hpp"
#include "simulation/simulation.hpp"

#include <asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

namespace zkasio::test {

/// Time in a simulation: it passes between the steps. Servers end the session of a client that was cut off for as long
/// as sessions live, and not earlier. One at a time.
class passing_time {
public:
    using duration = std::chrono::nanoseconds;

    /// Made before the first client.
    explicit passing_time(simulation& s);
    ~passing_time();
    passing_time(const passing_time&) = delete;
    passing_time& operator=(const passing_time&) = delete;

    static constexpr std::chrono::seconds session_length{9};

    duration now() const noexcept { return clock_.now(); }
    /// By the servers' clock, in milliseconds since 1970.
    std::int64_t server_time() const noexcept;

    /// The ends of outages come on the way.
    void pass(duration time);
    /// From now on some time passes every few steps, as long as `goes_on` returns true. Now and then, a step takes
    /// longer than a lease.
    void pass_while(std::function<bool()> goes_on);
    /// From now on only as much as lets a client renew its leases.
    void be_steady() noexcept { is_steady_ = true; }
    /// Completes when this time has passed.
    asio::awaitable<void> wait(duration time);

    /// For this time, the client has no connection.
    void cut_off(int client, duration time);
    /// For this time, a server answers each handshake of the client and hangs up. At its end a violation is thrown if
    /// the client has connected more often than the pauses between useless connections let it: they double, from 25 ms
    /// up to 10 s.
    void hang_up(int client, duration time);
    bool somebody_is_cut_off() const noexcept { return !let_in_at_.empty(); }
    /// All clients are let in.
    void end_outages();
    /// To be called after each step.
    void note_connections();
    std::function<void()> on_note = [] {};  ///< whenever connections are noted, also while time passes

private:
    void tick(std::function<bool()> goes_on);
    void end_sessions();
    void let_in(int client);

    simulation& s_;
    virtual_clock clock_;
    bool is_steady_ = false;
    std::multimap<duration, int> let_in_at_;     // clients
    std::map<std::int64_t, duration> heard_of_;  // sessions, by the servers
    struct useless {
        duration since;
        std::uint64_t connections_before;
    };
    std::map<int, useless> hung_up_;  // clients
};

}  // namespace zkasio::test
