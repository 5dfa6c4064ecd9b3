#include "simulation/passing_time.hpp"

#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

namespace zkasio::test {

passing_time::passing_time(simulation& s) : s_(s) {
    s_.ensemble.session_timeout = session_length;
    s_.ensemble.clock = [this] { return server_time(); };
    s_.ensemble.on_resumed = [this](std::int64_t session) { heard_of_[session] = clock_.now(); };
}

passing_time::~passing_time() {
    s_.ensemble.clock = {};
    s_.ensemble.on_resumed = [](std::int64_t) {};
}

std::int64_t passing_time::server_time() const noexcept {
    constexpr std::int64_t beginning = 1'700'000'000'000;
    return beginning + clock_.now() / std::chrono::milliseconds(1);
}

void passing_time::pass_while(std::function<bool()> goes_on) { tick(std::move(goes_on)); }

asio::awaitable<void> passing_time::wait(duration time) {
    asio::steady_timer timer(s_.executor());
    timer.expires_after(std::chrono::duration_cast<asio::steady_timer::duration>(time));
    co_await timer.async_wait(asio::use_awaitable);
}

void passing_time::cut_off(int client, duration time) {
    if (s_.ensemble.is_cut_off(client) || hung_up_.contains(client)) return;
    s_.ensemble.cut_off(client);
    let_in_at_.emplace(clock_.now() + time, client);
}

void passing_time::hang_up(int client, duration time) {
    if (s_.ensemble.is_cut_off(client) || hung_up_.contains(client)) return;
    s_.note("servers hang up on client ", std::to_string(client));
    hung_up_.emplace(client, useless{clock_.now(), s_.ensemble.traffic_of(client).connections});
    s_.ensemble.hang_up(client);
    let_in_at_.emplace(clock_.now() + time, client);
}

// A connection that has lasted for 10 s, since no step was taken in that time, was of use: then the pauses begin anew.
void passing_time::let_in(int client) {
    if (const auto one = hung_up_.find(client); one != hung_up_.end()) {
        const std::chrono::duration<double> took = clock_.now() - one->second.since;
        const auto made = s_.ensemble.traffic_of(client).connections - one->second.connections_before;
        const double most = (1 + std::floor(took.count() / 10)) * (4 + std::log2(1 + took.count() / 0.025));
        if (static_cast<double>(made) > most)
            throw violation("client " + std::to_string(client) + " has connected " + std::to_string(made) +
                            " times in " + std::to_string(took.count()) + " s to a server that hangs up");
        hung_up_.erase(one);
    }
    s_.ensemble.let_in(client);
}

void passing_time::end_outages() {
    for (const auto& [when, client] : std::exchange(let_in_at_, {})) let_in(client);
}

void passing_time::note_connections() {
    on_note();
    for (int n = 0; n < s_.clients(); ++n)
        if (s_.ensemble.has_connection(n)) heard_of_[s_.ensemble.session_of(n)] = clock_.now();
}

void passing_time::end_sessions() {
    note_connections();
    for (auto it = heard_of_.begin(); it != heard_of_.end();) {
        const auto one = it++;
        if (clock_.now() < one->second + session_length) continue;
        s_.ensemble.expire_session(one->first);
        heard_of_.erase(one);
    }
}

void passing_time::pass(duration time) {
    end_sessions();
    const duration until = clock_.now() + time;
    while (!let_in_at_.empty() && let_in_at_.begin()->first <= until) {
        const auto next = let_in_at_.extract(let_in_at_.begin());
        clock_.pass(std::max(next.key() - clock_.now(), duration::zero()));
        end_sessions();
        let_in(next.mapped());
    }
    clock_.pass(until - clock_.now());
    end_sessions();
    s_.note("it is ", std::to_string(clock_.now() / std::chrono::milliseconds(1)), " ms");
}

// Timers that are due, and those that follow from them, have their turns before anything else happens.
void passing_time::tick(std::function<bool()> goes_on) {
    if (!goes_on()) return;
    const std::size_t longest = is_steady_ || s_.chance(85) ? 400 : s_.chance(85) ? 2000 : 12'000;
    pass(std::chrono::milliseconds(s_.pick(longest)));
    for (int turns = 0; turns < 4; ++turns) s_.after(0, [] {});
    s_.after(1 + s_.pick(20), [this, goes_on = std::move(goes_on)] { tick(goes_on); });
}

}  // namespace zkasio::test
