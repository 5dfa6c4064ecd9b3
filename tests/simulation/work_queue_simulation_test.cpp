#include "simulation/explored.hpp"
#include "simulation/simulation.hpp"

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/error.hpp>
#include <zkasio/path.hpp>
#include <zkasio/queues/work_queue.hpp>

#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace work_queue_simulation_tests {

using namespace zkasio;
using namespace zkasio::test;

namespace {

const std::string items_path = "/q/entries";

struct queue_faults {
    bool drops = false, drops_lose = false, expiries = false, operator_deletes_claims = false;
};

/// What the users were told of an item, and what has happened to it.
struct history {
    int created = 0, removed = 0;
    int put = 0, put_unknown = 0;  ///< told
    int ended = 0, end_unknown = 0;
};

/// Producers and consumers of one queue, which meet with all faults, and whose items are accounted for.
class queue_scenario {
public:
    queue_scenario(simulation& simulated, const queue_faults& f) : s(simulated), faults_(f) {
        s.ensemble.on_commit = [this](const sim_txn& txn) { committed(txn); };
        s.on_idle = [this] { check_held(); };
        s.losses = [this] { return lost_deliveries(); };
    }
    ~queue_scenario() {
        s.ensemble.on_commit = [](const sim_txn&) {};
        s.losses = [] { return std::size_t{0}; };
        s.on_idle = [] {};
    }

    void run() {
        s.let_users_be_late();
        const std::size_t clients = 2 + s.pick(3);
        for (std::size_t n = 0; n < clients; ++n)
            s.add_client(faults_.drops_lose ? suspension_policy::lose : suspension_policy::keep);
        const std::size_t producers = 1 + s.pick(4), consumers = 1 + s.pick(8);
        for (std::size_t n = 0; n < producers; ++n, ++working_)
            s.spawn(s.user_executor(), produce(static_cast<int>(s.pick(clients)), n, 1 + s.pick(6)));
        for (std::size_t n = 0; n < consumers; ++n, ++working_)
            s.spawn(s.user_executor(), consume(static_cast<int>(s.pick(clients)), 1 + s.pick(8)));
        s.spawn(trouble());
        s.spawn(drain(static_cast<int>(s.pick(clients))));
        s.run();
        check_end();
        s.close();
    }

    enum class explored {
        claims,     ///< an item is there
        put,        ///< the first user puts the item
        giving_up,  ///< an item is there; the last user cancels, at any time
    };
    /// All schedules of consumers of one item.
    void run_all_orders(const explored_plan& p, explored what) {
        s.is_never_listed("/q/receipts");
        begin_exploring(
            s, p,
            [this](std::size_t n) {
                const std::vector<std::string> claims = s.ensemble.tree().children("/q/taken");
                if (claims.size() > n) s.ensemble.operate(detail::remove_request{"/q/taken/" + claims[n], any_version});
            },
            [&] {
                if (what != explored::put) begin_put(0);
                s.run();
            });
        for (int n = 0; n < p.users; ++n) {
            if (n == 0 && what == explored::put)
                begin_put(0);
            else
                begin_receive(n % 2, what == explored::giving_up && n == p.users - 1);
        }
        s.run();
        s.explore(false);
        end_of_waiting();
        s.spawn(drain(0));
        s.run();
        check_end();
        s.close();
    }

private:
    using delivery_ptr = std::shared_ptr<delivery>;

    void committed(const sim_txn& txn) {
        for (const sim_change& c : txn.changes) {
            const bool is_claim = parent_path(c.path) == "/q/taken";
            if (is_claim && txn.ends_session && faults_.expiries) cut_short_.insert(c.node.stat.czxid);
            if (parent_path(c.path) != items_path) continue;
            if (c.what == sim_change::kind::created) {
                data_of_[c.path] = c.node.data;
                if (++items_[c.node.data].created > 1) throw violation(c.node.data + " was put twice");
            }
            if (c.what == sim_change::kind::removed) ++items_[data_of_.at(c.path)].removed;
        }
    }

    std::size_t lost_deliveries() const {
        return static_cast<std::size_t>(std::count_if(deliveries_.begin(), deliveries_.end(), [](const auto& d) {
            return is_loss(d->reason());
        }));
    }

    // No item has two consumers that both believe to have it. (A client does not notice at once that an operator has
    // taken a claim away, or that its session was ended before its time.)
    void check_held() const {
        if (faults_.operator_deletes_claims) return;
        std::set<std::string> held;
        for (const auto& d : deliveries_)
            if (d->held() && !cut_short_.contains(d->token().value()) && !held.insert(d->name()).second)
                throw violation(d->item() + " has two consumers");
    }

    void check_end() const {
        int lost = 0;
        for (const auto& [data, h] : items_) {
            if (h.put > 0 && h.created != 1) throw violation(data + " was not put");
            if (h.put + h.put_unknown == 0 && h.created > 0) throw violation(data + " was put, and its put failed");
            if (h.created != h.removed) throw violation(data + " is left");
            if (h.ended > 1) throw violation(data + " was done twice");
            if (h.ended > h.removed) throw violation(data + " was done and not removed");
            if (h.created == 1 && h.ended == 0 && h.end_unknown == 0) ++lost;
        }
        if (lost > takes_unknown_) throw violation("items are lost: " + std::to_string(lost));
        if (!s.ensemble.tree().children("/q/taken").empty()) throw violation("a claim is left");
    }

    // Whether the error belongs to the faults of this run.
    void expect(const error& e, bool cancelled) const {
        if (cancelled && e.code() == condition::cancelled) return;
        const bool claims_are_lost = faults_.expiries || faults_.operator_deletes_claims || faults_.drops_lose;
        if (claims_are_lost && e.code() == errc::lock_lost) return;
        if (faults_.expiries && e.code() == errc::session_expired) return;
        throw violation(std::string("an operation failed: ") + e.what());
    }

    asio::awaitable<void> produce(int client, std::size_t number, std::size_t n) {
        const work_queue q(s.client_number(client), "/q");
        for (std::size_t i = 0; i < n; ++i) {
            co_await s.pause(s.pick(25), client);
            const std::string data = std::to_string(number) + "." + std::to_string(i);
            co_await put(q, data);
        }
        --working_;
    }

    asio::awaitable<void> put(const work_queue& q, std::string data) {
        s.note("put ", data);
        try {
            co_await q.put(data, put_options().priority(s.chance(80) ? 100 : 50));
            ++items_[data].put;
        } catch (const error& e) {
            expect(e, false);
            items_[data].put_unknown += e.outcome_unknown();
        }
    }

    void begin_put(int client) {
        ++working_;
        s.spawn(put_once(client));
    }

    asio::awaitable<void> put_once(int client) {
        const work_queue q(s.client_number(client), "/q");
        co_await put(q, "0.0");
        --working_;
    }

    void begin_receive(int client, bool gives_up) {
        ++working_;
        s.spawn(receive_once(client, gives_up));
    }

    asio::awaitable<void> receive_once(int client, bool gives_up) {
        const work_queue q(s.client_number(client), "/q");
        const auto d = std::make_shared<delivery>();
        const auto cancelled = std::make_shared<bool>(false);
        running receives(s.user_executor(client), receive_into(q, d));
        if (gives_up)
            cancel_later(client, receives, cancelled);
        else
            waiting_.emplace_back(receives, cancelled);
        const std::exception_ptr failed = co_await receives.end();
        if (failed) rethrow_unless_cancelled(failed, *cancelled);
        if (!failed) co_await work_on(client, d);
        --working_;
    }

    // Nothing happens any more: those that still wait have got no item, and none is left.
    void end_of_waiting() {
        for (auto& [receives, cancelled] : waiting_) {
            if (receives.ended()) continue;
            if (items_are_left()) throw violation("an item is left, and a consumer waits");
            *cancelled = true;
            receives.cancel();
            s.run();
        }
        if (working_ > 0) throw violation("a user has not ended");
    }

    asio::awaitable<void> receive_into(work_queue q, delivery_ptr to) {
        delivery d = co_await q.receive();
        *to = std::move(d);
    }

    asio::awaitable<void> take(work_queue q, bool patient, std::shared_ptr<bool> cancelled) {
        std::optional<std::string> data;
        try {
            if (patient) {
                std::string certain = co_await q.take();
                data = std::move(certain);
            } else {
                data = co_await q.try_take();
            }
        } catch (const error& e) {
            takes_unknown_ += e.outcome_unknown();
            expect(e, *cancelled);
        }
        if (data) s.note("took ", *data);
        if (data) ++items_[*data].ended;
    }

    // Ends `what` after some steps, or when nothing else happens.
    void cancel_later(int client, const running& what, std::shared_ptr<bool> cancelled) {
        s.after(s.pick(s.chance(50) ? 12 : 150), [this, task = what, cancelled]() mutable {
            if (task.ended()) return;
            s.note("cancel");
            *cancelled = true;
            task.cancel();
        }, client);
    }

    asio::awaitable<void> consume(int client, std::size_t rounds) {
        const work_queue q(s.client_number(client), "/q");
        for (; rounds > 0; --rounds) {
            co_await s.pause(s.pick(20), client);
            const auto cancelled = std::make_shared<bool>(false);
            if (s.chance(35)) {
                running takes(s.user_executor(client), take(q, s.chance(70), cancelled));
                cancel_later(client, takes, cancelled);
                const std::exception_ptr failed = co_await takes.end();
                if (failed) rethrow_unless_cancelled(failed, *cancelled);
                continue;
            }
            const auto d = std::make_shared<delivery>();
            running receives(s.user_executor(client), receive_into(q, d));
            cancel_later(client, receives, cancelled);
            const std::exception_ptr failed = co_await receives.end();
            if (failed) rethrow_unless_cancelled(failed, *cancelled);
            if (!failed) co_await work_on(client, d);
        }
        --working_;
    }

    void rethrow_unless_cancelled(const std::exception_ptr& failed, bool cancelled) const {
        try {
            std::rethrow_exception(failed);
        } catch (const error& e) {
            expect(e, cancelled);
        } catch (const std::system_error& e) {  // the coroutine was cancelled before it began
            if (!cancelled || e.code() != condition::cancelled) throw;
        }
    }

    asio::awaitable<void> finish(delivery_ptr d, bool reject, std::shared_ptr<bool> cancelled) {
        const std::string data = d->item();
        try {
            if (reject)
                co_await d->reject("unwanted");
            else
                co_await d->done();
            s.note("ended ", data);
            ++items_[data].ended;
        } catch (const error& e) {
            items_[data].end_unknown += e.outcome_unknown();
            s.note("not ended ", data, ": ", std::string(e.what()));
            if (e.code() != errc::lock_released) expect(e, *cancelled);  // cancelled before it began
        }
    }

    asio::awaitable<void> work_on(int client, delivery_ptr d) {
        s.note("received ", d->item());
        s.seen_at("/q/taken");
        const auto it = deliveries_.insert(deliveries_.end(), d);
        co_await s.pause(s.pick(15), client);
        const std::size_t what = s.pick(10);
        if (what < 7) {
            const auto cancelled = std::make_shared<bool>(false);
            running finishes(s.user_executor(client), finish(d, what == 6, cancelled));
            if (what == 5) cancel_later(client, finishes, cancelled);
            const std::exception_ptr failed = co_await finishes.end();
            if (failed) rethrow_unless_cancelled(failed, *cancelled);
        } else if (what == 7) {
            co_await d->again();
        }
        s.seen_at("/q/taken");
        deliveries_.erase(it);
        *d = delivery();
    }

    asio::awaitable<void> trouble() {
        for (int n = 0; n < 40 && working_ > 0; ++n) {
            co_await s.pause(5 + s.pick(40));
            const int victim = static_cast<int>(s.pick(static_cast<std::size_t>(s.clients())));
            const std::size_t what = s.pick(3);
            if (what == 0 && faults_.drops) s.ensemble.drop_connection(victim);
            if (what == 1 && faults_.expiries && s.chance(50)) s.ensemble.expire(victim);
            const std::vector<std::string> claims = s.ensemble.tree().children("/q/taken");
            if (what == 2 && faults_.operator_deletes_claims && !claims.empty())
                s.ensemble.operate(detail::remove_request{"/q/taken/" + claims[s.pick(claims.size())], any_version});
        }
    }

    bool items_are_left() const { return !s.ensemble.tree().children(items_path).empty(); }

    // When the others have ended: takes what they have left. The last item may be done meanwhile, by a request of a
    // consumer that was cancelled: then no item will come.
    asio::awaitable<void> drain(int client) {
        const work_queue q(s.client_number(client), "/q");
        while (working_ > 0) co_await s.pause(20);
        while (items_are_left()) {
            const auto cancelled = std::make_shared<bool>(false);
            running takes(s.user_executor(), take(q, true, cancelled));
            for (int pauses = 0; !takes.ended() && items_are_left(); ++pauses) {
                if (pauses == 1000) throw violation("items are left, and nobody is given them");
                co_await s.pause(20);
            }
            *cancelled = !takes.ended();
            if (*cancelled) takes.cancel();
            const std::exception_ptr failed = co_await takes.end();
            if (failed) rethrow_unless_cancelled(failed, *cancelled);
        }
    }

    simulation& s;
    const queue_faults faults_;
    std::map<std::string, history> items_;        // by data
    std::map<std::string, std::string> data_of_;  // by path
    std::list<delivery_ptr> deliveries_;
    std::set<std::int64_t> cut_short_;  // the czxids of claims that ended with a session, perhaps before its lease
    std::vector<std::pair<running, std::shared_ptr<bool>>> waiting_;  // with whether it was cancelled
    std::size_t working_ = 0;
    int takes_unknown_ = 0;
};

void run_queue(const std::string& name, const queue_faults& f) {
    run_seeds(name, 400, [&](simulation& s) {
        s.ensemble.lagging = s.chance(50);
        queue_scenario(s, f).run();
    });
}

void explore_queue(const std::string& name, queue_scenario::explored what) {
    run_all_schedules(name, [&](simulation& s, const explored_plan& p) {
        make_nodes(s, {"/q", items_path, "/q/taken", "/q/receipts"});
        queue_faults f;
        f.expiries = p.expiries();
        f.operator_deletes_claims = p.operators();
        queue_scenario(s, f).run_all_orders(p, what);
    });
}

}  // namespace

TEST_CASE("work_queue, simulated: producers and consumers of all sorts", "[simulation]") { run_queue("calm", {}); }

TEST_CASE("work_queue, simulated: connections break", "[simulation]") {
    queue_faults f;
    f.drops = true;
    run_queue("drops", f);
}

TEST_CASE("work_queue, simulated: connections break, and the claims are lost with them", "[simulation]") {
    queue_faults f;
    f.drops = f.drops_lose = true;
    run_queue("drops that lose", f);
}

TEST_CASE("work_queue, simulated: sessions expire", "[simulation]") {
    queue_faults f;
    f.drops = f.expiries = true;
    run_queue("expiries", f);
}

TEST_CASE("work_queue, simulated: an operator deletes claims", "[simulation]") {
    queue_faults f;
    f.drops = f.operator_deletes_claims = true;
    run_queue("operator", f);
}

TEST_CASE("work_queue, all schedules", "[exploration]") {
    explore_queue("work_queue", queue_scenario::explored::claims);
}

TEST_CASE("work_queue, all schedules: the item is put", "[exploration]") {
    explore_queue("work_queue, put", queue_scenario::explored::put);
}

TEST_CASE("work_queue, all schedules: the last user gives up", "[exploration]") {
    explore_queue("work_queue, cancelled", queue_scenario::explored::giving_up);
}

// One consumer gets the items of each producer in their order, whatever breaks.
TEST_CASE("work_queue, simulated: the order of each producer", "[simulation]") {
    run_seeds("order", 300, [](simulation& s) {
        s.ensemble.lagging = s.chance(50);
        s.let_users_be_late();
        for (int n = 0; n < 3; ++n) s.add_client();
        std::size_t left = 2 * 6;
        std::map<char, std::string> last;
        const auto produce = [&](int number) -> asio::awaitable<void> {
            const work_queue q(s.client_number(number), "/q");
            for (int i = 0; i < 6; ++i) {
                co_await s.pause(s.pick(15));
                co_await q.put(std::to_string(number) + "." + std::to_string(i));
            }
        };
        const auto consume = [&]() -> asio::awaitable<void> {
            const work_queue q(s.client_number(2), "/q");
            for (; left > 0; --left) {
                const std::string data = co_await q.take();
                if (data <= last[data[0]]) throw violation(data + " after " + last[data[0]]);
                last[data[0]] = data;
            }
        };
        const auto trouble = [&]() -> asio::awaitable<void> {
            for (int n = 0; n < 10 && left > 0; ++n) {
                co_await s.pause(5 + s.pick(40));
                s.ensemble.drop_connection(static_cast<int>(s.pick(3)));
            }
        };
        s.spawn(s.user_executor(), produce(0));
        s.spawn(s.user_executor(), produce(1));
        s.spawn(s.user_executor(), consume());
        s.spawn(trouble());
        s.run();
        if (left > 0) throw violation("items are left");
        s.close();
    });
}

}  // namespace work_queue_simulation_tests
