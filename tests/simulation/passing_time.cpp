#include "simulation/passing_time.hpp"

#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace zkasio::test {

passing_time::passing_time(simulation& s) : s_(s) {
    s_.ensemble.session_timeout = session_length;
    s_.ensemble.clock = [this] { return server_time(); };
}

passing_time::~passing_time() { s_.ensemble.clock = {}; }

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
    if (s_.ensemble.is_cut_off(client)) return;
    s_.ensemble.cut_off(client);
    let_in_at_.emplace(clock_.now() + time, client);
}

void passing_time::end_outages() {
    for (const auto& [when, client] : std::exchange(let_in_at_, {})) s_.ensemble.let_in(client);
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
        s_.ensemble.let_in(next.mapped());
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
