#pragma once

#include "simulation/passing_time.hpp"
#include "simulation/simulation.hpp"

#include "support/test_client.hpp"

#include <zkasio/election/leader_observer.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

namespace zkasio::test {

/// Observers of an election whose candidates an operator puts there and takes away, while time passes, and clients are
/// cut off for a while: for less than it takes to notice, or for longer than their sessions live.
///
/// Checks that an observer that is cut off says so a third of the session timeout after its client has noticed, and not
/// earlier, if it was asked by then; that what it tells is, in order and without repetition, what was true; and that it
/// knows what is true when its client is connected, and nothing is under way.
class observer_scenario {
public:
    explicit observer_scenario(simulation& s);
    ~observer_scenario();

    void run_at_random(bool expiries);

private:
    using duration = std::chrono::nanoseconds;
    /// Who leads: a token and its data; 0 and nothing where nobody does.
    struct truth {
        std::int64_t token = 0;
        std::string data;
        friend bool operator==(const truth&, const truth&) = default;
    };
    struct observed {
        explicit observed(int c) : client(c) {}
        const int client;
        std::optional<leader_observer> observer;
        std::optional<running> next;
        bool waits = false, asked_in_time = false;  // the latter: while there was a connection
        std::optional<leader_view> last;
        std::size_t at = 0;  // in the history: what it has told last
    };

    void open(int clients);
    void change();
    void proclaim(const std::string& leader);
    std::vector<std::string> candidates() const;
    truth now() const;
    asio::awaitable<void> elect(std::size_t changes);
    asio::awaitable<void> ask(observed* o);
    asio::awaitable<void> observe(observed* o);
    void cut_off(int client, bool expiries);
    void tick(std::size_t more, bool expiries);

    void told(observed& o, const leader_view& view);
    void told_unknown(const observed& o) const;
    bool connected(int client) const { return s_.client_number(client).state() == session_state::connected; }
    void note_connections();
    void check_cut_off() const;
    void check_quiet() const;

    simulation& s_;
    passing_time time_;
    std::list<observed> observers_;
    std::vector<truth> history_{truth()};  // without repetition
    std::vector<duration> last_connected_;  // of each client
    std::size_t proclaimed_ = 0, candidates_ = 0;
    bool over_ = false;
};

}  // namespace zkasio::test
