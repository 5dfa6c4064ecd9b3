#include "simulation/simulation.hpp"

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/barriers/latch.hpp>
#include <zkasio/error.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace latch_simulation_tests {

using namespace zkasio;
using namespace zkasio::test;

namespace {

const std::string latch_path = "/latches/simulated";
constexpr std::chrono::seconds session_length(9);

struct troubles {
    bool drops = false, expiries = false, cancellations = false;
    bool operator_deletes = false;  // reports, when none is missing
    bool reporters_end = false;     // a call that is cancelled is not repeated if its report was made
};

/// Coroutines of several clients report, each thing more than once, and others wait for the reports.
class latch_scenario {
public:
    latch_scenario(simulation& simulated, troubles t) : s(simulated), with_(t), count_(1 + s.pick(6)) {
        s.ensemble.session_timeout = session_length;
        s.ensemble.on_commit = [this](const sim_txn& txn) { committed(txn); };
        s.on_quiet = [this] {
            if (done_ && waiting_ > 0) throw violation("no report is missing, and a client waits");
        };
    }
    ~latch_scenario() {
        s.ensemble.on_commit = [](const sim_txn&) {};
        s.on_quiet = [] {};
    }

    void run() {
        s.let_users_be_late();
        s.ensemble.lagging = s.chance(50);
        const std::size_t clients = 1 + s.pick(4);
        for (std::size_t n = 0; n < clients; ++n) s.add_client();
        const auto any_client = [&] { return static_cast<int>(s.pick(clients)); };
        for (std::size_t id = 0; id < count_; ++id)
            for (std::size_t times = 1 + s.pick(2); times > 0; --times, ++reporting_)
                s.spawn(s.user_executor(), report(any_client(), std::to_string(id)));
        for (std::size_t n = 1 + s.pick(5); n > 0; --n) s.spawn(s.user_executor(), wait(any_client(), s.chance(20)));
        for (std::size_t n = s.pick(3); n > 0; --n) s.spawn(s.user_executor(), look(any_client()));
        s.spawn(trouble());
        s.run();
        end();
    }

private:
    void committed(const sim_txn& txn) {
        if (txn.ends_session) sessions_end_ = true;
        for (const sim_change& c : txn.changes) {
            if (parent_path(c.path) != latch_path || c.what != sim_change::kind::created) continue;
            if (node_name(c.path) != "done") {
                reported_.insert(std::string(node_name(c.path)));
                continue;
            }
            done_ = true;
            if (missing() > 0) throw violation("reports are missing, and the latch is open");
        }
    }
    std::size_t missing() const { return count_ - std::min(count_, reported_.size()); }
    latch latch_of(int client) const { return {s.client_number(client), latch_path, count_}; }

    bool is_expected(const std::system_error& e, bool cancelled) const {
        return (cancelled && e.code() == condition::cancelled) || (sessions_end_ && e.code() == errc::session_expired);
    }

    // --------------------------------------------------------------------------------------------------- reports
    // The answer was true at some time since the report was made, or since the call if there was one already.
    asio::awaitable<void> count_down(int client, std::string id) {
        std::set<std::string> known = reported_;
        known.insert(id);
        const std::size_t left = co_await latch_of(client).count_down(id);
        s.note("client ", std::to_string(client), " has reported ", id, ", missing: ", std::to_string(left));
        if (!reported_.contains(id)) throw violation(id + " was reported, and is not there");
        if (left < missing() || left > count_ - std::min(count_, known.size()))
            throw violation("after the report of " + id + " a wrong number is missing: " + std::to_string(left));
        if (left == 0 && !done_) throw violation("the last report was made, and the others are not told");
    }

    asio::awaitable<void> report(int client, std::string id) {
        co_await s.pause(s.pick(80), client);
        for (bool again = true; again;) {
            const auto cancelled = std::make_shared<bool>(false);
            running task(s.user_executor(client), count_down(client, id));
            if (with_.cancellations && s.chance(50))
                s.after(s.pick(20), [task, cancelled]() mutable {
                    if (task.ended()) return;
                    *cancelled = true;
                    task.cancel();
                });
            const std::exception_ptr failed = co_await task.end();
            again = failed && !(with_.reporters_end && reported_.contains(id));
            try {
                if (failed) std::rethrow_exception(failed);
            } catch (const std::system_error& e) {
                if (!is_expected(e, *cancelled)) throw violation(id + " was not reported: " + e.what());
            }
        }
        --reporting_;
    }

    // ------------------------------------------------------------------------------------------------ who reads
    asio::awaitable<void> pass(int client) {
        co_await latch_of(client).wait();
        s.note("a client has passed");
        if (missing() > 0) throw violation("a client has passed, and reports are missing");
    }

    asio::awaitable<void> wait(int client, bool gives_up) {
        co_await s.pause(s.pick(100), client);
        ++waiting_;
        running task(s.user_executor(client), pass(client));
        if (gives_up) s.after(s.pick(60), [task]() mutable { task.cancel(); });
        const std::exception_ptr failed = co_await task.end();
        --waiting_;
        try {
            if (failed) std::rethrow_exception(failed);
        } catch (const std::system_error& e) {
            if (!gives_up || e.code() != condition::cancelled)
                throw violation(std::string("a wait has failed: ") + e.what());
        }
    }

    // A session never goes back.
    asio::awaitable<void> look(int client) {
        std::size_t before = count_;
        for (std::size_t n = 1 + s.pick(6); n > 0; --n) {
            co_await s.pause(s.pick(30), client);
            const latch the_latch = latch_of(client);
            try {
                const std::size_t left = co_await the_latch.remaining();
                if (sessions_end_) before = count_;
                if (left < missing() || left > before) throw violation("remaining: " + std::to_string(left));
                before = left;
            } catch (const std::system_error& e) {
                if (!is_expected(e, false)) throw violation(std::string("remaining() has failed: ") + e.what());
            }
        }
    }

    // ---------------------------------------------------------------------------------------------------- faults
    asio::awaitable<void> trouble() {
        for (int n = 0; n < 20 && (reporting_ > 0 || waiting_ > 0); ++n) {
            co_await s.pause(2 + s.pick(20));
            const int victim = static_cast<int>(s.pick(static_cast<std::size_t>(s.clients())));
            const std::size_t what = s.pick(3);
            if (what == 0 && with_.drops) s.ensemble.drop_connection(victim);
            if (what == 1 && with_.expiries) s.ensemble.expire(victim);
            if (what == 2 && with_.operator_deletes && done_ && !reported_.empty()) {
                const std::vector<std::string> ids(reported_.begin(), reported_.end());
                const std::string path = join_path(latch_path, ids[s.pick(ids.size())]);
                s.ensemble.operate(detail::remove_request{path, any_version});
            }
        }
    }

    // Where the last reporter has ended before the clients were told, these count for themselves as time passes.
    void end() {
        if (reporting_ > 0) throw violation("a reporter has not ended");
        if (missing() > 0) throw violation("a report is lost");
        if (!done_ && !with_.reporters_end) throw violation("all reports were made, and the others are not told");
        for (int seconds = 0; waiting_ > 0 && seconds < 2 * session_length.count(); ++seconds) {
            clock_.pass(std::chrono::seconds(1));
            s.after(0, [] {});
            s.run();
        }
        if (waiting_ > 0) throw violation("a client waits for ever");
        s.close();
    }

    simulation& s;
    virtual_clock clock_;
    const troubles with_;
    const std::size_t count_;
    std::set<std::string> reported_;
    std::size_t reporting_ = 0, waiting_ = 0;
    bool done_ = false, sessions_end_ = false;
};

void run_latch(const std::string& name, troubles t) {
    run_seeds("latch, " + name, 300, [&](simulation& s) { latch_scenario(s, t).run(); });
}

}  // namespace

TEST_CASE("latch, simulated: reporters and clients that wait", "[simulation]") { run_latch("calm", {}); }

TEST_CASE("latch, simulated: connections break", "[simulation]") {
    troubles t;
    t.drops = true;
    run_latch("drops", t);
}

TEST_CASE("latch, simulated: sessions expire", "[simulation]") {
    troubles t;
    t.drops = t.expiries = true;
    run_latch("expiries", t);
}

TEST_CASE("latch, simulated: reports are cancelled and made again, and an operator removes old ones", "[simulation]") {
    troubles t;
    t.drops = t.expiries = t.cancellations = t.operator_deletes = true;
    run_latch("cancellations", t);
}

TEST_CASE("latch, simulated: the last reporter ends before the others are told", "[simulation]") {
    troubles t;
    t.cancellations = t.reporters_end = true;
    run_latch("reporters that end", t);
}

}  // namespace latch_simulation_tests
