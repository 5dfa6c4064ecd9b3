// What a client tells of queues, counters, ids, transactions that run again, barriers and slots.

#include "support/catch.hpp"
#include "support/recording_observer.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/barriers/double_barrier.hpp>
#include <zkasio/client_stats.hpp>
#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/counters/id_allocator.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/modify.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/testing/fake_ensemble.hpp>
#include <zkasio/transact/transact.hpp>

#include <asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace structure_reports_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

struct observed {
    observed()
        : seen(std::make_shared<recording_observer>()),
          zk(ensemble.client(calm().observer(seen, seen->where.get_executor()))) {}

    template <class Body>
    void run(Body body) {
        ensemble.run(body);
        ensemble.run(zk.idle());
        ensemble.run_for(1s);  // until all is told
        seen->look();
    }
    commit_stats of(commit_kind kind) const {
        for (const commit_stats& c : zk.stats().commits)
            if (c.kind == kind) return c;
        return {};
    }

    fake_ensemble ensemble;
    const std::shared_ptr<recording_observer> seen;
    const client zk;
};

asio::awaitable<void> sleep(fake_ensemble& e, std::chrono::nanoseconds time) {
    asio::steady_timer timer(e.get_executor(), time);
    co_await timer.async_wait(asio::use_awaitable);
}

template <class T>
asio::awaitable<std::error_code> code_of(asio::awaitable<T> operation) {
    try {
        static_cast<void>(co_await std::move(operation));
    } catch (const std::system_error& e) {
        co_return e.code();
    }
    co_return std::error_code();
}

template <class T>
asio::awaitable<void> however_it_ends(asio::awaitable<T> operation) {
    static_cast<void>(co_await code_of(std::move(operation)));
}

asio::awaitable<void> give_back(delivery d) { co_await d.again(); }

}  // namespace

TEST_CASE("structure reports: each claim of an item is told with its end", "[reports]") {
    observed o;
    o.run([&]() -> asio::awaitable<void> {
        const work_queue q(o.zk, "/q");
        std::vector<std::string> three;
        for (const char* text : {"a", "b", "c"}) three.emplace_back(text);
        co_await q.put_all(three);
        co_await sleep(o.ensemble, 5s);
        {
            delivery d = co_await q.receive();
            CHECK(o.zk.stats().deliveries.held == 1);
            co_await d.again();
        }
        {
            delivery d = co_await q.receive();
            co_await d.done();
        }
        {
            delivery d = co_await q.receive();
            co_await d.reject("unwanted");
        }
        { const delivery dropped = co_await q.receive(); }
        co_await o.zk.idle();
        {
            delivery d = co_await q.receive();
            o.ensemble.remove("/q/taken/" + d.name());
            co_await d.lost();
            CHECK(o.zk.stats().deliveries.held == 0);
        }
        co_await o.zk.idle();
        const std::string taken = co_await q.take();
        CHECK(taken == "c");
    });
    const delivery_stats all = o.zk.stats().deliveries;
    CHECK(all.held == 0);
    CHECK(all.ended_by(delivery_end::done) == 2);
    CHECK(all.ended_by(delivery_end::given_back) == 2);
    CHECK(all.ended_by(delivery_end::rejected) == 1);
    CHECK(all.ended_by(delivery_end::lost) == 1);
    CHECK(all.holds.count() == 6);
    CHECK(all.waits.count() == 3);  // each item has waited once
    CHECK(all.waits.sum >= 15s);
    CHECK(o.of(commit_kind::put).succeeded == 1);
    CHECK(o.of(commit_kind::put).parts == 3);
    CHECK(o.of(commit_kind::claim).parts == 6);

    std::vector<delivery_end> ends;
    for (const delivery_report& r : o.seen->deliveries) {
        ends.push_back(r.how);
        CHECK(r.path == "/q");
        CHECK(r.item.starts_with("entry-100-"));
        CHECK(r.token > 0);
        REQUIRE(r.waited);
        CHECK(*r.waited >= 5s);
        CHECK(r.ended >= r.claimed);
        CHECK((r.lost == loss_reason::node_deleted) == (r.how == delivery_end::lost));
    }
    using end = delivery_end;
    CHECK(ends == std::vector<end>{end::given_back, end::done, end::rejected, end::given_back, end::lost, end::done});
    REQUIRE(o.seen->deliveries.size() == 6);
    CHECK(o.seen->deliveries[0].attempt == 1);
    CHECK(o.seen->deliveries[1].attempt == 2);
    REQUIRE_FALSE(o.seen->commits.empty());
    CHECK(o.seen->commits.front().kind == commit_kind::put);
    CHECK(o.seen->commits.front().parts == 3);
    CHECK(o.seen->commits.front().path == "/q");
}

TEST_CASE("structure reports: an item with a delay has waited since its time", "[reports]") {
    observed o;
    o.run([&]() -> asio::awaitable<void> {
        const work_queue q(o.zk, "/q");
        co_await q.put("a", put_options().delay(10min));
        const std::string taken = co_await q.take();
        CHECK(taken == "a");
    });
    REQUIRE(o.seen->deliveries.size() == 1);
    CHECK(*o.seen->deliveries.front().waited < 1s);
}

TEST_CASE("structure reports: a claim that ends with its session, its consumer or its pause", "[reports]") {
    observed o;
    o.run([&]() -> asio::awaitable<void> {
        const work_queue q(o.zk, "/q");
        co_await q.put("a");
        {
            const delivery d = co_await q.receive();
            o.ensemble.expire(o.zk);
            const loss_reason why = co_await d.lost();
            CHECK(why == loss_reason::session_expired);
        }
        {
            delivery d = co_await q.receive();
            co_await d.again(10s);
            CHECK(o.zk.stats().deliveries.held == 0);
        }
        co_await q.take();
        // The consumer is gone when its claim is answered.
        auto receive = [&]() -> asio::awaitable<void> { static_cast<void>(co_await q.receive()); };
        running waits(o.ensemble.get_executor(), receive());
        o.ensemble.on_step([&](std::string_view step) {
            if (step.find("multi") != std::string_view::npos && !o.ensemble.children("/q/taken").empty())
                waits.cancel();
        });
        co_await q.put("b");
        co_await waits.end();
        o.ensemble.on_step(nullptr);
    });
    const delivery_stats all = o.zk.stats().deliveries;
    CHECK(all.held == 0);
    CHECK(all.ended_by(delivery_end::lost) == 1);
    CHECK(all.ended_by(delivery_end::given_back) == 2);
    CHECK(all.ended_by(delivery_end::done) == 1);
    CHECK(o.of(commit_kind::claim).parts == 4);
}

TEST_CASE("structure reports: a spent item is buried, and a claim that comes too late is a conflict", "[reports]") {
    observed o;
    const client other = o.ensemble.client(calm());
    o.run([&]() -> asio::awaitable<void> {
        const work_queue q(o.zk, "/q", work_queue_options().most_deliveries(1));
        co_await q.put("a");
        delivery first = co_await q.receive();
        co_await give_back(std::move(first));
        const std::optional<std::string> none = co_await q.try_take();
        CHECK_FALSE(none);
        CHECK(o.ensemble.children("/q/dead").size() == 1);
        // Another client claims the item between its read and its claim.
        co_await q.put("b");
        o.ensemble.on_step([&, done = false](std::string_view step) mutable {
            if (done || step.find("deliver 0: get") == std::string_view::npos) return;
            const auto items = o.ensemble.children("/q/entries");
            if (items.empty()) return;
            done = true;
            o.ensemble.set("/q/entries/" + items.front(), "b");
        });
        const std::optional<std::string> missed = co_await q.try_take();
        o.ensemble.on_step(nullptr);
        CHECK_FALSE(missed);
    });
    CHECK(o.of(commit_kind::bury).succeeded >= 1);
    CHECK(o.of(commit_kind::claim).conflicts >= 1);
    CHECK(o.of(commit_kind::claim).failed == o.of(commit_kind::claim).conflicts);
    CHECK(o.zk.stats().deliveries.held == 0);
}

TEST_CASE("structure reports: additions of one write, and those that other clients were ahead of", "[reports]") {
    observed o;
    const client other = o.ensemble.client(calm());
    o.run([&]() -> asio::awaitable<void> {
        const atomic_counter n(o.zk, "/n", counter_options().promote_to("/turns").tries(1));
        const atomic_counter theirs(other, "/n");
        std::vector<running> adding;
        for (int i = 0; i < 10; ++i) adding.emplace_back(o.ensemble.get_executor(), however_it_ends(n.add(1)));
        for (const running& a : adding) co_await a.end();
        CHECK(o.of(commit_kind::add).parts == 10);
        CHECK(o.of(commit_kind::add).succeeded == 2);  // the first one did not wait
        CHECK(o.of(commit_kind::add).conflicts == 0);
        co_await theirs.add(1);
        const std::int64_t now = co_await n.add(1);
        CHECK(now == 12);
        CHECK(o.of(commit_kind::add).conflicts == 1);
        CHECK(o.of(commit_kind::add).promoted == 1);
        const std::error_code full = co_await code_of(n.add(std::numeric_limits<std::int64_t>::max()));
        CHECK(full == std::errc::result_out_of_range);
        const bool set = co_await n.compare_and_set(12, 20);
        CHECK(set);
        o.ensemble.refuse("/n", zk_errc::no_auth);
        const std::error_code refused = co_await code_of(n.add(1));
        CHECK(refused == zk_errc::no_auth);
        o.ensemble.accept("/n");
    });
    const commit_stats add = o.of(commit_kind::add);
    CHECK(add.parts == 11);
    CHECK(add.succeeded == 3);  // a sum that has no room was not written
    CHECK(add.failed == 1);
    CHECK(o.of(commit_kind::compare_and_set).succeeded == 1);
    REQUIRE(o.seen->commits.size() == 5);
    CHECK(o.seen->commits[2].conflicts == 1);
    CHECK(o.seen->commits[2].promoted);
    CHECK(o.seen->commits[2].path == "/n");
    CHECK(o.seen->commits.back().code == zk_errc::no_auth);
}

TEST_CASE("structure reports: blocks of ids", "[reports]") {
    observed o;
    o.run([&]() -> asio::awaitable<void> {
        const id_allocator ids(o.zk, "/ids", id_options().block(10));
        for (int i = 0; i < 15; ++i) co_await ids.next();
        co_await o.zk.idle();
    });
    CHECK(o.of(commit_kind::id_block).succeeded == 2);
    CHECK(o.of(commit_kind::id_block).parts == 20);
}

TEST_CASE("structure reports: changes and transactions, with the runs that have met a conflict", "[reports]") {
    observed o;
    o.ensemble.create("/a", "1");
    o.run([&]() -> asio::awaitable<void> {
        int runs = 0;
        const auto change = [&](std::optional<node_data> was) -> std::optional<std::string> {
            if (++runs == 1) o.ensemble.set("/a", "2");
            return was->data + "x";
        };
        co_await modify(o.zk, "/a", change);
        int bodies = 0;
        const auto body = [&](unit& u) -> asio::awaitable<void> {
            const std::optional<node_data> was = co_await u.get("/a");
            if (++bodies < 3) o.ensemble.set("/a", "y");
            u.set("/a", was->data + "z");
        };
        co_await transact(o.zk, body);
        const auto fails = [&](unit&) -> asio::awaitable<void> {
            throw std::runtime_error("no");
            co_return;
        };
        bool thrown = false;
        try {
            co_await transact(o.zk, fails);
        } catch (const std::runtime_error&) {
            thrown = true;
        }
        CHECK(thrown);
        o.ensemble.lose_answer(o.zk, "multi");
        const std::error_code lost = co_await code_of(transact(o.zk, body));
        CHECK(lost == zk_errc::connection_loss);
    });
    CHECK(o.of(commit_kind::modify).succeeded == 1);
    CHECK(o.of(commit_kind::modify).conflicts == 1);
    const commit_stats all = o.of(commit_kind::transact);
    CHECK(all.succeeded == 1);
    CHECK(all.conflicts == 2);
    CHECK(all.failed == 2);
    CHECK(all.unknown == 1);
    REQUIRE(o.seen->commits.size() == 4);
    CHECK(o.seen->commits[0].path == "/a");
    CHECK(o.seen->commits[1].conflicts == 2);
    CHECK(o.seen->commits[2].code == std::errc::operation_canceled);
    CHECK(o.seen->commits[3].outcome_unknown);
}

TEST_CASE("structure reports: members that enter, leave, give up and are lost", "[reports]") {
    observed o;
    const client other = o.ensemble.client(calm());
    o.run([&]() -> asio::awaitable<void> {
        const double_barrier ours(o.zk, "/b", 2), theirs(other, "/b", 2);
        {
            running waits(o.ensemble.get_executor(), however_it_ends(ours.enter()));
            co_await sleep(o.ensemble, 1s);
            waits.cancel();
            co_await waits.end();
            co_await o.zk.exists("/b");  // what happens on the client's strand has been counted by then
            CHECK(o.zk.stats().barriers.failed == 1);
            CHECK(o.zk.stats().barriers.inside == 0);
        }
        const auto go_through = [&](bool expires) -> asio::awaitable<void> {
            auto pass = [&]() -> asio::awaitable<void> {
                barrier_entry e = co_await theirs.enter();
                co_await e.leave();
            };
            running passing(o.ensemble.get_executor(), pass());
            barrier_entry e = co_await ours.enter();
            CHECK(o.zk.stats().barriers.inside == 1);
            if (expires) {
                o.ensemble.expire(o.zk);
                co_await e.lost();
            }
            static_cast<void>(co_await code_of(e.leave()));
            co_await passing.end();
        };
        co_await go_through(false);
        co_await go_through(true);
    });
    const barrier_stats all = o.zk.stats().barriers;
    CHECK(all.entered == 2);
    CHECK(all.left == 1);
    CHECK(all.lost == 1);
    CHECK(all.failed == 2);
    CHECK(all.inside == 0);
    CHECK(all.enters.count() == 3);
    CHECK(all.enters.sum >= 1s);
    REQUIRE(o.seen->barriers.size() == 5);
    CHECK(o.seen->barriers[0].code == condition::cancelled);
    CHECK(o.seen->barriers[1].step == barrier_step::enter);
    CHECK(o.seen->barriers[2].step == barrier_step::leave);
    CHECK(o.seen->barriers[2].path == "/b");
    CHECK(o.seen->barriers[4].lost == loss_reason::session_expired);
}

TEST_CASE("structure reports: a number of slots is told as a lock is", "[reports]") {
    observed o;
    o.run([&]() -> asio::awaitable<void> {
        const slots one(o.zk, "/s", 1);
        lock_guard guard = co_await one.acquire();
        CHECK(o.zk.stats().locks.held == 1);
        const std::optional<lock_guard> none = co_await one.try_acquire();
        CHECK_FALSE(none);
        co_await guard.release();
    });
    CHECK(o.zk.stats().locks.granted == 1);
    CHECK(o.zk.stats().locks.refused == 1);
    CHECK(o.zk.stats().locks.held == 0);
    REQUIRE(o.seen->waits.size() == 2);
    CHECK(o.seen->waits.front().path == "/s");
    CHECK(o.seen->waits.front().token != 0);
    REQUIRE(o.seen->holds.size() == 1);
    CHECK(o.seen->holds.front().path == "/s");
}

}  // namespace structure_reports_tests
