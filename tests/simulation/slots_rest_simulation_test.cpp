#include "simulation/passing_time.hpp"
#include "simulation/simulation.hpp"

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/error.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>

namespace slots_rest_simulation_tests {

using namespace zkasio;
using namespace zkasio::test;
using std::chrono::milliseconds;

namespace {

const std::string numbers = "/locks/numbers";
constexpr std::uint32_t how_many = 3;

struct rest_faults {
    bool drops = false;
    bool outages = false;  // of clients, up to more than their sessions live
    bool expiries = false, operator_deletes = false;
};

/// Users of numbers that rest when they were given back: a number is given again only after so long, by the servers'
/// clock, and to one user at a time.
class rest_scenario {
public:
    rest_scenario(simulation& simulated, const rest_faults& f) : s(simulated), faults_(f), time_(simulated) {
        s.ensemble.on_commit = [this](const sim_txn& txn) { committed(txn); };
        s.on_idle = [this] {
            time_.note_connections();
            check_held();
        };
    }
    ~rest_scenario() {
        s.ensemble.on_commit = [](const sim_txn&) {};
        s.on_idle = [] {};
    }

    void run() {
        s.let_users_be_late();
        quiet_ = milliseconds(500 + s.pick(6000));
        const std::size_t clients = 2 + s.pick(2);
        for (std::size_t n = 0; n < clients; ++n) s.add_client();
        for (std::size_t n = 1 + s.pick(6); n > 0; --n, ++working_) s.spawn(use_some(1 + s.pick(4)));
        s.spawn(trouble(5 + s.pick(20)));
        time_.pass_while([this] { return working_ > 0; });
        s.run();
        if (working_ > 0) throw violation("a user has not ended");
        for (const std::string& name : s.ensemble.tree().children(numbers))
            if (is_number(name)) throw violation("a number is left: " + name);
        s.close();
    }

private:
    using guard_ptr = std::shared_ptr<lock_guard>;

    int some_client() { return static_cast<int>(s.pick(static_cast<std::size_t>(s.clients()))); }
    static bool is_number(std::string_view name) { return name.find_first_not_of("0123456789") == name.npos; }

    // The rest of a number whose session has ended begins with a transaction that creates its node and removes it.
    void committed(const sim_txn& txn) {
        for (const sim_change& c : txn.changes) {
            const std::string name(node_name(c.path));
            if (parent_path(c.path) != numbers || !is_number(name)) continue;
            if (c.what == sim_change::kind::removed) {
                const bool cut_short = txn.session == 0 || (txn.ends_session && cut_short_now_);
                if (cut_short) cut_short_.insert(c.node.stat.czxid);
                ended_[name] = txn.time;
            }
            if (c.what != sim_change::kind::created || !s.ensemble.tree().find(c.path)) continue;
            const auto ended = ended_.find(name);
            if (ended != ended_.end() && txn.time - ended->second < quiet_.count())
                throw violation(name + " has rested for " + std::to_string(txn.time - ended->second) + " ms only");
        }
    }

    void check_held() const {
        std::set<std::uint32_t> held;
        for (const guard_ptr& g : guards_)
            if (g->held() && !cut_short_.contains(g->token().value()) && !held.insert(*g->slot()).second)
                throw violation(std::to_string(*g->slot()) + " is held twice");
    }

    asio::awaitable<void> use_some(std::size_t rounds) {
        for (; rounds > 0; --rounds) {
            co_await s.pause(s.pick(60));
            co_await use_one(some_client());
        }
        --working_;
    }

    asio::awaitable<void> acquire(int client, guard_ptr to) {
        const slots all(s.client_number(client), numbers, how_many, slots_options().quiet(quiet_));
        lock_guard got = co_await all.acquire(acquire_options().survive_expiry());
        *to = std::move(got);
    }

    asio::awaitable<void> use_one(int client) {
        const auto g = std::make_shared<lock_guard>();
        running acquires(s.user_executor(client), acquire(client, g));
        const auto cancelled = std::make_shared<bool>(false);
        if (s.chance(20))
            s.after(s.pick(200), [acquires, cancelled]() mutable {
                if (acquires.ended()) return;
                *cancelled = true;
                acquires.cancel();
            });
        for (int pauses = 0; !acquires.ended(); ++pauses) {
            if (pauses == 2000) throw violation("an acquire does not end");
            co_await s.pause(20);
        }
        const std::error_code failed = co_await acquires.code();
        if (failed && !(*cancelled && failed == condition::cancelled))
            throw violation("acquire() fails: " + failed.message());
        if (failed) co_return;
        s.note("client ", std::to_string(client), " has ", std::to_string(*g->slot()));
        const auto at = guards_.insert(guards_.end(), g);
        co_await s.pause(s.pick(s.chance(50) ? 20 : 150));
        guards_.erase(at);
        s.note("client ", std::to_string(client), " gives ", std::to_string(*g->slot()), " back");
        *g = lock_guard();
    }

    asio::awaitable<void> trouble(std::size_t rounds) {
        for (; rounds > 0 && working_ > 0; --rounds) {
            co_await s.pause(5 + s.pick(60));
            const int victim = some_client();
            const std::size_t what = s.pick(4);
            if (what == 0 && faults_.drops) s.ensemble.drop_connection(victim);
            if (what == 1 && faults_.outages) time_.cut_off(victim, milliseconds(s.pick(14'000)));
            if (what == 2 && faults_.expiries) {
                cut_short_now_ = true;
                s.ensemble.expire(victim);
                cut_short_now_ = false;
            }
            const std::string path = join_path(numbers, std::to_string(s.pick(how_many)));
            if (what == 3 && faults_.operator_deletes && s.ensemble.tree().find(path)) {
                s.note("an operator deletes ", path);
                s.ensemble.operate(detail::remove_request{path, any_version});
            }
        }
        time_.end_outages();
        time_.be_steady();
    }

    simulation& s;
    const rest_faults faults_;
    passing_time time_;
    milliseconds quiet_{0};
    std::list<guard_ptr> guards_;
    std::map<std::string, std::int64_t> ended_;  // when a number was held last, by the servers' clock
    std::set<std::int64_t> cut_short_;           // tokens that were lost to an operator, or before the lease's end
    std::size_t working_ = 0;
    bool cut_short_now_ = false;
};

void run_rests(const std::string& name, const rest_faults& f) {
    run_seeds("slots that rest, " + name, 100, [&](simulation& s) {
        s.ensemble.lagging = s.chance(50);
        rest_scenario(s, f).run();
    });
}

}  // namespace

TEST_CASE("slots, simulated: numbers that rest", "[simulation]") { run_rests("calm", {}); }

TEST_CASE("slots, simulated: numbers that rest, while connections break", "[simulation]") {
    rest_faults f;
    f.drops = true;
    run_rests("drops", f);
}

TEST_CASE("slots, simulated: numbers that rest, during outages that some sessions do not survive", "[simulation]") {
    rest_faults f;
    f.drops = f.outages = true;
    run_rests("outages", f);
}

TEST_CASE("slots, simulated: numbers that rest, while sessions end and an operator deletes nodes", "[simulation]") {
    rest_faults f;
    f.drops = f.expiries = f.operator_deletes = true;
    run_rests("all of it", f);
}

}  // namespace slots_rest_simulation_tests
