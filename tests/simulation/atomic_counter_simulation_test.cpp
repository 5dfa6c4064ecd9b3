#include "simulation/explored.hpp"
#include "simulation/simulation.hpp"

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/error.hpp>

#include <asio/error.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

namespace atomic_counter_simulation_tests {

using namespace zkasio;
using namespace zkasio::test;

namespace {

const std::string number_path = "/sums/number", receipts_elsewhere = "/receipts", turns = "/turns";

struct troubles {
    bool drops = false, expiries = false, cancellations = false;
    bool operator_touches = false;  // the number: its version changes
    bool operator_deletes = false;  // receipts
};

/// Each addition has a bit of its own: the number tells which of them were made, and how often.
class tally {
public:
    void committed(const sim_txn& txn) {
        for (const sim_change& c : txn.changes) {
            if (c.path != number_path) continue;
            if (c.what == sim_change::kind::removed) throw violation("the number was removed");
            const std::int64_t now = c.node.data.empty() ? 0 : std::stoll(c.node.data);
            const std::int64_t added = now - number_;
            if (added < 0) throw violation("the number has become smaller, by " + std::to_string(-added));
            for (const auto& [bit, done] : made_)
                if ((added & bit) != 0 && done) throw violation(std::to_string(bit) + " was added twice");
            for (auto& [bit, done] : made_) done = done || (added & bit) != 0;
            number_ = now;
            if (number_ != sum()) throw violation("the number is not the sum of additions");
        }
    }
    void begins(std::int64_t bit) { made_.emplace(bit, false); }
    void added(std::int64_t bit, std::int64_t number) const {
        if (!made_.at(bit)) throw violation(std::to_string(bit) + " is lost");
        if ((number & bit) == 0) throw violation(std::to_string(bit) + " is not in its own result");
    }
    void failed(std::int64_t bit) {
        if (made_.at(bit)) throw violation(std::to_string(bit) + " was added, and its caller was told that it was not");
        never_.insert(bit);
    }
    void check_end() const {
        for (const std::int64_t bit : never_)
            if (made_.at(bit)) throw violation(std::to_string(bit) + " was added after all");
    }

private:
    std::int64_t sum() const {
        std::int64_t all = 0;
        for (const auto& [bit, done] : made_) all += done ? bit : 0;
        return all;
    }
    std::int64_t number_ = 0;
    std::map<std::int64_t, bool> made_;
    std::set<std::int64_t> never_;
};

/// Coroutines of several clients add to one number, which is looked at from outside.
class counter_scenario {
public:
    counter_scenario(simulation& simulated, troubles t) : s(simulated), with_(t) {
        s.ensemble.on_commit = [this](const sim_txn& txn) {
            if (txn.ends_session) sessions_end_ = true;
            tally_.committed(txn);
        };
    }
    ~counter_scenario() {
        s.ensemble.on_commit = [](const sim_txn&) {};
    }

    void run() {
        s.let_users_be_late();
        s.ensemble.lagging = s.chance(50);
        how_.format(kazoo_counter());
        if (s.chance(50)) how_.receipts(receipts_elsewhere);
        if (s.chance(40)) how_.promote_to(turns).tries(static_cast<int>(s.pick(3)));
        const std::size_t clients = 1 + s.pick(4), workers = 2 + s.pick(10), rounds = 1 + s.pick(5);
        for (std::size_t n = 0; n < clients; ++n) s.add_client();
        for (std::size_t n = 0; n < workers; ++n, ++working_)
            s.spawn(s.user_executor(), worker(static_cast<int>(s.pick(clients)), rounds));
        s.spawn(trouble());
        s.run();
        end();
    }

    /// All schedules of users who add once. An operator changes the number's version, or deletes a receipt.
    void run_all_orders(const explored_plan& p) {
        how_.format(kazoo_counter()).receipts(receipts_elsewhere);
        s.is_never_listed(receipts_elsewhere);
        begin_exploring(s, p, [this](std::size_t n) { n == 0 ? touch() : delete_receipt(); });
        for (int n = 0; n < p.users; ++n, ++working_) s.spawn(once(n % 2));
        s.run();
        s.explore(false);
        end();
    }

private:
    void end() const {
        if (working_ != 0) throw violation("a worker has not ended");
        tally_.check_end();
        s.close();
    }

    struct outcome {
        std::optional<std::int64_t> number;
        std::error_code code;
        bool unknown = false;
        std::string what;
    };

    static asio::awaitable<void> add(atomic_counter n, std::int64_t bit, std::shared_ptr<outcome> o) {
        try {
            o->number = co_await n.add(bit);
        } catch (const error& e) {
            o->code = e.code();
            o->unknown = e.outcome_unknown();
            o->what = e.what();
        } catch (const std::system_error& e) {
            o->code = e.code();
            o->what = e.what();
        }
    }

    asio::awaitable<void> worker(int client, std::size_t rounds) {
        const atomic_counter n(s.client_number(client), number_path, how_);
        for (; rounds > 0; --rounds) {
            co_await s.pause(s.pick(25), client);
            co_await attempt(client, n);
        }
        --working_;
    }

    asio::awaitable<void> once(int client) {
        const atomic_counter n(s.client_number(client), number_path, how_);
        co_await attempt(client, n);
        --working_;
    }

    asio::awaitable<void> attempt(int client, const atomic_counter& n) {
        const std::int64_t bit = std::int64_t{1} << next_bit_++;
        tally_.begins(bit);
        const auto o = std::make_shared<outcome>();
        const auto cancelled = std::make_shared<bool>(false);
        running task(s.user_executor(client), add(n, bit, o));
        if (with_.cancellations && s.chance(40))
            s.after(s.pick(60), [task, cancelled]() mutable {
                if (task.ended()) return;
                *cancelled = true;
                task.cancel();
            });
        const std::exception_ptr not_begun = co_await task.end();  // it was cancelled before
        if (not_begun && *cancelled) o->code = asio::error::operation_aborted;
        s.note("add ", std::to_string(bit), ": ", o->number ? std::to_string(*o->number) : o->what);
        s.seen_at(number_path);
        expect(bit, *o, *cancelled);
    }

    void expect(std::int64_t bit, const outcome& o, bool cancelled) {
        if (o.number) return tally_.added(bit, *o.number);
        const bool may_fail = (cancelled && o.code == condition::cancelled) ||
            (sessions_end_ && o.unknown && o.code == errc::session_expired) ||
            (with_.operator_deletes && o.unknown && o.code == zk_errc::connection_loss);
        if (!may_fail) throw violation(std::to_string(bit) + " was not added: " + o.what);
        if (!o.unknown) tally_.failed(bit);
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
    tally tally_;
    int next_bit_ = 0;  // at most 55 additions
    std::size_t working_ = 0;
    bool sessions_end_ = false;
};

void run_counter(const std::string& name, troubles t) {
    run_seeds(name, 300, [&](simulation& s) { counter_scenario(s, t).run(); });
}

// @param nodes exist from the beginning.
void explore_counter(const std::string& name, const std::vector<std::string>& nodes) {
    run_all_schedules(name, [&](simulation& s, const explored_plan& p) {
        make_nodes(s, nodes);
        troubles t;
        t.expiries = p.expiries();
        t.operator_touches = t.operator_deletes = p.operators();
        counter_scenario(s, t).run_all_orders(p);
    });
}

}  // namespace

TEST_CASE("atomic_counter, simulated: additions of several clients", "[simulation]") { run_counter("calm", {}); }

TEST_CASE("atomic_counter, simulated: connections break", "[simulation]") {
    troubles t;
    t.drops = true;
    run_counter("drops", t);
}

TEST_CASE("atomic_counter, simulated: sessions expire", "[simulation]") {
    troubles t;
    t.drops = t.expiries = true;
    run_counter("expiries", t);
}

TEST_CASE("atomic_counter, simulated: additions are cancelled, and an operator is about", "[simulation]") {
    troubles t;
    t.drops = t.expiries = t.cancellations = t.operator_touches = t.operator_deletes = true;
    run_counter("all of it", t);
}

TEST_CASE("atomic_counter, all schedules", "[exploration]") {
    explore_counter("atomic_counter", {"/sums", number_path, receipts_elsewhere});
}

TEST_CASE("atomic_counter, all schedules: the number is missing", "[exploration]") {
    explore_counter("atomic_counter, missing", {"/sums", receipts_elsewhere});
}

}  // namespace atomic_counter_simulation_tests
