#include "simulation/simulation.hpp"

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/barriers/barrier.hpp>
#include <zkasio/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace barrier_simulation_tests {

using namespace zkasio;
using namespace zkasio::test;

namespace {

const std::string gate_path = "/gates/simulated";

struct troubles {
    bool drops = false, expiries = false, cancellations = false;
    bool operator_opens = false;
};

/// When the gate was open, and which client has closed and opened it how often.
class gate_history {
public:
    struct changes {
        std::size_t closed = 0, opened = 0;  // by this client
        std::size_t cuts = 0;                // of its connections and sessions
        std::size_t last = 0;                // of its changes: when
        std::size_t known = 0;               // its server knows what was then, until the next cut
    };
    void is_closed(int client) {
        states_.push_back(false);
        ++of(client).closed;
        of(client).last = now();
    }
    void is_opened(int client) {
        states_.push_back(true);
        ++of(client).opened;
        of(client).last = now();
    }
    bool is_open() const { return states_.back(); }
    std::size_t now() const { return states_.size() - 1; }
    /// Whether it was open, or closed, at some time since then.
    bool was(bool open, std::size_t since) const {
        return std::find(states_.begin() + static_cast<std::ptrdiff_t>(since), states_.end(), open) != states_.end();
    }
    changes& of(int client) { return by_client_[client]; }

private:
    std::vector<bool> states_{true};
    std::map<int, changes> by_client_;
};

/// Coroutines of several clients close and open one barrier, while others wait.
class gate_scenario {
public:
    gate_scenario(simulation& simulated, troubles t) : s(simulated), with_(t) {
        s.ensemble.on_commit = [this](const sim_txn& txn) { committed(txn); };
        s.on_idle = [this] {
            for (int n = 0; n < s.clients(); ++n)
                if (s.ensemble.session_of(n) != 0) client_of_[s.ensemble.session_of(n)] = n;
        };
        s.on_quiet = [this] {
            if (gate_.is_open() && waiting_ > 0) throw violation("the barrier is open, and a client waits");
        };
    }
    ~gate_scenario() {
        s.ensemble.on_commit = [](const sim_txn&) {};
        s.on_idle = s.on_quiet = [] {};
    }

    void run() {
        s.let_users_be_late();
        s.ensemble.lagging = s.chance(50);
        const std::size_t clients = 1 + s.pick(4), rounds = 1 + s.pick(5);
        for (std::size_t n = 0; n < clients; ++n) {
            s.add_client();
            ++working_;
            s.spawn(s.user_executor(), switches(static_cast<int>(n), rounds));
        }
        for (std::size_t n = 1 + s.pick(6); n > 0; --n, ++working_)
            s.spawn(s.user_executor(), visitor(static_cast<int>(s.pick(clients)), rounds));
        s.spawn(trouble());
        s.run();
        end();
    }

private:
    using changes = gate_history::changes;

    void committed(const sim_txn& txn) {
        if (txn.ends_session) sessions_end_ = true;
        for (const sim_change& c : txn.changes) {
            if (c.path != gate_path) continue;
            const int client = txn.session == 0 ? simulation::nobody : client_of_.at(txn.session);
            if (c.what == sim_change::kind::created) gate_.is_closed(client);
            if (c.what == sim_change::kind::removed) gate_.is_opened(client);
        }
    }
    barrier gate_of(int client) const { return {s.client_number(client), gate_path}; }

    // Where servers lag, a read may tell what was true before the call; but nothing older than what the session knows.
    std::size_t readable_since(int client) { return s.ensemble.lagging ? gate_.of(client).known : gate_.now(); }

    void cut(int client, bool done) {
        gate_.of(client).cuts += done;
        gate_.of(client).known = 0;
    }

    changes has_completed(int client, std::size_t since, const changes& before) {
        changes& its = gate_.of(client);
        if (its.cuts == before.cuts) its.known = std::max(since, its.last);
        return its;
    }

    // ---------------------------------------------------------------------------------------------- closing, opening
    // Each client closes and opens in turn, so what its sessions do meanwhile is this call's. After a call that was
    // cancelled, its request may still be carried out.
    asio::awaitable<void> close(int client) {
        const std::size_t since = gate_.now();
        const changes before = gate_.of(client);
        const bool closed = co_await gate_of(client).set();
        s.note("client ", std::to_string(client), closed ? " has closed it" : " finds it closed");
        if (!gate_.was(false, since)) throw violation("set() has completed, and the barrier was open all the time");
        const changes after = has_completed(client, since, before);
        if (stray_[client]) co_return;
        if (closed && after.closed == before.closed) throw violation("set() claims to have closed the barrier");
        // It may have closed the barrier twice, if the first answer was lost; and the second time it found it closed.
        const bool still_closed = after.closed != before.closed && gate_.now() == after.last;
        if (still_closed && !closed) throw violation("set() does not know that it has closed the barrier");
        const bool sure = after.cuts == before.cuts;
        if (sure && after.closed - before.closed != closed) throw violation("set() does not know what it has done");
    }

    asio::awaitable<void> open(int client) {
        const std::size_t since = gate_.now();
        const changes before = gate_.of(client);
        const bool opened = co_await gate_of(client).remove();
        s.note("client ", std::to_string(client), opened ? " has opened it" : " finds it open");
        if (!gate_.was(true, since)) throw violation("remove() has completed, and the barrier was closed all the time");
        const changes after = has_completed(client, since, before);
        if (stray_[client]) co_return;
        const bool sure = after.cuts == before.cuts;
        if (opened && after.opened == before.opened) throw violation("remove() claims to have opened the barrier");
        if (sure && after.opened - before.opened != opened) throw violation("remove() does not know what it has done");
    }

    asio::awaitable<void> switches(int client, std::size_t rounds) {
        for (; rounds > 0; --rounds) {
            co_await s.pause(s.pick(40), client);
            const bool closes = s.chance(60);
            const auto cancelled = std::make_shared<bool>(false);
            running task(s.user_executor(client), closes ? close(client) : open(client));
            if (with_.cancellations && s.chance(30))
                s.after(s.pick(20), [task, cancelled]() mutable {
                    if (task.ended()) return;
                    *cancelled = true;
                    task.cancel();
                });
            const std::exception_ptr failed = co_await task.end();
            if (failed) expect(failed, client, *cancelled, closes);
        }
        --working_;
    }

    void expect(const std::exception_ptr& failed, int client, bool cancelled, bool closes) {
        try {
            std::rethrow_exception(failed);
        } catch (const std::system_error& e) {
            stray_[client] = true;
            if (cancelled && e.code() == condition::cancelled) return;
            if (sessions_end_ && closes && e.code() == errc::session_expired) return;
            throw violation(std::string("the barrier was not ") + (closes ? "closed: " : "opened: ") + e.what());
        }
    }

    // ------------------------------------------------------------------------------------------------------ waiting
    asio::awaitable<void> look(int client) {
        const std::size_t since = readable_since(client);
        const bool closed = co_await gate_of(client).is_set();
        if (!gate_.was(!closed, since)) throw violation("is_set() tells what was not true");
    }

    asio::awaitable<void> pass(int client) {
        const std::size_t since = readable_since(client);
        co_await gate_of(client).wait();
        s.note("a client has passed");
        if (!gate_.was(true, since)) throw violation("a client has passed, and the barrier was closed all the time");
    }

    asio::awaitable<void> visitor(int client, std::size_t rounds) {
        for (; rounds > 0; --rounds) {
            co_await s.pause(s.pick(30), client);
            const bool looks = s.chance(20), gives_up = s.chance(20);
            running task(s.user_executor(client), looks ? look(client) : pass(client));
            if (gives_up) s.after(s.pick(60), [task]() mutable { task.cancel(); });
            waiting_ += !looks;
            const std::exception_ptr failed = co_await task.end();
            waiting_ -= !looks;
            try {
                if (failed) std::rethrow_exception(failed);
            } catch (const std::system_error& e) {
                const bool cancelled = gives_up && e.code() == condition::cancelled;
                if (!cancelled && !(looks && sessions_end_ && e.code() == condition::session_ended))
                    throw violation(std::string("a visitor fails: ") + e.what());
            }
        }
        --working_;
    }

    // ------------------------------------------------------------------------------------------------------- faults
    asio::awaitable<void> trouble() {
        for (int n = 0; n < 30 && working_ > 0; ++n) {
            co_await s.pause(2 + s.pick(20));
            const int victim = static_cast<int>(s.pick(static_cast<std::size_t>(s.clients())));
            const std::size_t what = s.pick(3);
            if (what == 0 && with_.drops) cut(victim, s.ensemble.drop_connection(victim));
            if (what == 1 && with_.expiries) cut(victim, s.ensemble.expire(victim));
            if (what == 2 && with_.operator_opens) s.ensemble.operate(detail::remove_request{gate_path, any_version});
        }
    }

    // Nothing happens any more: visitors wait at a closed barrier, and only for that.
    void end() {
        while (working_ > 0 && !gate_.is_open()) {
            s.ensemble.operate(detail::remove_request{gate_path, any_version});
            s.run();
        }
        if (working_ > 0) throw violation("somebody has not ended");
        s.close();
    }

    simulation& s;
    const troubles with_;
    gate_history gate_;
    std::map<std::int64_t, int> client_of_;  // by session
    std::map<int, bool> stray_;              // clients whose requests may still be carried out
    std::size_t working_ = 0, waiting_ = 0;
    bool sessions_end_ = false;
};

void run_gate(const std::string& name, troubles t) {
    run_seeds("barrier, " + name, 400, [&](simulation& s) { gate_scenario(s, t).run(); });
}

}  // namespace

TEST_CASE("barrier, simulated: closed and opened while clients wait", "[simulation]") { run_gate("calm", {}); }

TEST_CASE("barrier, simulated: connections break", "[simulation]") {
    troubles t;
    t.drops = true;
    run_gate("drops", t);
}

TEST_CASE("barrier, simulated: sessions expire", "[simulation]") {
    troubles t;
    t.drops = t.expiries = true;
    run_gate("expiries", t);
}

TEST_CASE("barrier, simulated: calls are cancelled, and an operator opens the barrier", "[simulation]") {
    troubles t;
    t.drops = t.expiries = t.cancellations = t.operator_opens = true;
    run_gate("cancellations", t);
}

}  // namespace barrier_simulation_tests
