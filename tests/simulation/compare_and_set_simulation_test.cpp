#include "simulation/simulation.hpp"

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/error.hpp>

#include <asio/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

namespace compare_and_set_simulation_tests {

using namespace zkasio;
using namespace zkasio::test;

namespace {

const std::string number_path = "/sums/number", receipts_elsewhere = "/receipts";

struct troubles {
    bool drops = false, expiries = false, cancellations = false;
    bool operator_touches = false;  // the number: its version changes
    bool operator_deletes = false;  // receipts
};

/// Each call of compare_and_set() has a number of its own to write: the numbers that there were tell which calls have
/// written, and how often.
class number_scenario {
public:
    number_scenario(simulation& simulated, troubles t) : s(simulated), with_(t) {
        s.ensemble.on_commit = [this](const sim_txn& txn) { committed(txn); };
    }
    ~number_scenario() {
        s.ensemble.on_commit = [](const sim_txn&) {};
    }

    void run() {
        s.let_users_be_late();
        how_.format(kazoo_counter());
        if (s.chance(50)) how_.receipts(receipts_elsewhere);
        const std::size_t clients = 1 + s.pick(4), workers = 1 + s.pick(6), rounds = 1 + s.pick(6);
        for (std::size_t n = 0; n < clients; ++n) s.add_client();
        for (std::size_t n = 0; n < workers; ++n, ++working_)
            s.spawn(s.user_executor(), worker(static_cast<int>(s.pick(clients)), rounds));
        s.spawn(trouble());
        s.run();
        if (working_ != 0) throw violation("a worker has not ended");
        s.close();
    }

private:
    struct outcome {
        std::optional<bool> written;
        std::error_code code;
        bool unknown = false;
        std::string what;
    };

    void committed(const sim_txn& txn) {
        if (txn.ends_session) sessions_end_ = true;
        for (const sim_change& c : txn.changes) {
            if (c.path != number_path) continue;
            const std::int64_t now = c.node.data.empty() ? 0 : std::stoll(c.node.data);
            if (now == numbers_.back()) continue;
            if (std::count(numbers_.begin(), numbers_.end(), now) > 0)
                throw violation(std::to_string(now) + " was written twice");
            if (never_.contains(now)) throw violation(std::to_string(now) + " was written after all");
            numbers_.push_back(now);
        }
    }

    asio::awaitable<void> worker(int client, std::size_t rounds) {
        const atomic_counter n(s.client_number(client), number_path, how_);
        for (; rounds > 0; --rounds) {
            co_await s.pause(s.pick(25), client);
            // What the caller expects may be true no longer, or never have been.
            const std::int64_t expected = s.chance(80) ? numbers_.back() : numbers_[s.pick(numbers_.size())];
            co_await attempt(client, n, expected, ++last_);
        }
        --working_;
    }

    static asio::awaitable<void> set(atomic_counter n, std::int64_t expected, std::int64_t desired,
                                     std::shared_ptr<outcome> o) {
        try {
            o->written = co_await n.compare_and_set(expected, desired);
        } catch (const error& e) {
            o->code = e.code();
            o->unknown = e.outcome_unknown();
            o->what = e.what();
        } catch (const std::system_error& e) {
            o->code = e.code();
            o->what = e.what();
        }
    }

    asio::awaitable<void> attempt(int client, atomic_counter n, std::int64_t expected, std::int64_t desired) {
        const std::string words = std::to_string(expected) + " to " + std::to_string(desired);
        s.note("set ", words);
        const std::size_t begin = numbers_.size() - 1;
        const auto o = std::make_shared<outcome>();
        const auto cancelled = std::make_shared<bool>(false);
        running task(s.user_executor(client), set(n, expected, desired, o));
        if (with_.cancellations && s.chance(40))
            s.after(s.pick(60), [task, cancelled]() mutable {
                if (task.ended()) return;
                *cancelled = true;
                task.cancel();
            });
        const std::exception_ptr not_begun = co_await task.end();  // it was cancelled before
        if (not_begun && *cancelled) o->code = asio::error::operation_aborted;
        s.note("set ", words, ": ", o->written ? (*o->written ? "done" : "it is another number") : o->what);
        expect(expected, desired, begin, *o, *cancelled);
    }

    void expect(std::int64_t expected, std::int64_t desired, std::size_t begin, const outcome& o, bool cancelled) {
        const std::string words = std::to_string(expected) + " to " + std::to_string(desired);
        const auto at = std::find(numbers_.begin(), numbers_.end(), desired);
        if (at != numbers_.end() && *(at - 1) != expected)
            throw violation(words + ": it was " + std::to_string(*(at - 1)) + " that was replaced");
        if (o.written && *o.written && at == numbers_.end()) throw violation(words + " is lost");
        if (o.written && !*o.written) {
            const auto first = numbers_.begin() + static_cast<std::ptrdiff_t>(begin);
            const bool was_other =
                std::any_of(first, numbers_.end(), [&](std::int64_t number) { return number != expected; });
            if (!was_other) throw violation(words + " was refused, and the number was the expected one all the time");
        }
        if (o.written ? !*o.written : !o.unknown) {
            if (at != numbers_.end()) throw violation(words + " was made, and told was that it was not");
            never_.insert(desired);
        }
        const bool may_fail = (cancelled && o.code == condition::cancelled) ||
            (sessions_end_ && o.unknown && o.code == errc::session_expired) ||
            (with_.operator_deletes && o.unknown && o.code == zk_errc::connection_loss);
        if (!o.written && !may_fail) throw violation(words + " failed: " + o.what);
    }

    asio::awaitable<void> trouble() {
        for (int n = 0; n < 40 && working_ > 0; ++n) {
            co_await s.pause(5 + s.pick(40));
            const int victim = static_cast<int>(s.pick(static_cast<std::size_t>(s.clients())));
            const std::size_t what = s.pick(4);
            if (what == 0 && with_.drops) s.ensemble.drop_connection(victim);
            if (what == 1 && with_.expiries) s.ensemble.expire(victim);
            if (what == 2 && with_.operator_touches) touch();
            if (what == 3 && with_.operator_deletes) delete_receipt();
        }
    }
    void touch() {
        const sim_node* const n = s.ensemble.tree().find(number_path);
        if (n) s.ensemble.operate(detail::set_request{number_path, n->data, any_version});
    }
    void delete_receipt() {
        s.delete_child_of(how_.receipts().empty() ? number_path : how_.receipts());
    }

    simulation& s;
    const troubles with_;
    counter_options how_;
    std::vector<std::int64_t> numbers_{0};  // one after another
    std::set<std::int64_t> never_;          // are never written
    std::int64_t last_ = 0;
    std::size_t working_ = 0;
    bool sessions_end_ = false;
};

void run_numbers(const std::string& name, troubles t) {
    run_seeds("compare_and_set, " + name, 300, [&](simulation& s) {
        s.ensemble.lagging = s.chance(50);
        number_scenario(s, t).run();
    });
}

}  // namespace

TEST_CASE("atomic_counter, simulated: compare_and_set() of several clients", "[simulation]") {
    run_numbers("calm", {});
}

TEST_CASE("atomic_counter, simulated: compare_and_set() while connections break", "[simulation]") {
    troubles t;
    t.drops = true;
    run_numbers("drops", t);
}

TEST_CASE("atomic_counter, simulated: compare_and_set() while sessions expire", "[simulation]") {
    troubles t;
    t.drops = t.expiries = true;
    run_numbers("expiries", t);
}

TEST_CASE("atomic_counter, simulated: compare_and_set() is cancelled, and an operator is about", "[simulation]") {
    troubles t;
    t.drops = t.expiries = t.cancellations = t.operator_touches = t.operator_deletes = true;
    run_numbers("all of it", t);
}

}  // namespace compare_and_set_simulation_tests
