#include "support/lock_checks.hpp"
#include "support/recording_observer.hpp"
#include "support/test_client.hpp"

#include <zkasio/client_stats.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

using recorder_ptr = std::shared_ptr<recording_observer>;

client_options recorded_by(const recorder_ptr& o) { return options().observer(o, o->where.get_executor()); }

// Whatever was acquired is given back, and the client is idle: then all is told that has happened.
asio::awaitable<lock_stats> settled(client zk) {
    co_await zk.idle();
    const client_stats stats = zk.stats();
    co_return stats.locks;
}

}  // namespace

TEST_CASE("lock reports: a mutex that is free, handed over here, and taken over from another session") {
    const auto seen = std::make_shared<recording_observer>();
    std::string dir;
    std::vector<std::int64_t> tokens;
    auto body = [&](const test_client& zk) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        dir = co_await fresh_directory(zk, "reports-mutex");
        const mutex ours(zk, dir), theirs(other, dir);
        lock_guard free = co_await ours.acquire();
        tokens.push_back(free.token().value());
        taker local(executor, ours.acquire());
        co_await until_queued(zk, dir, 2);
        taker foreign(executor, theirs.acquire());
        co_await until_queued(zk, dir, 3);
        taker behind_foreign(executor, ours.acquire());
        co_await until_queued(zk, dir, 4);
        co_await free.release();
        co_await local.got();
        tokens.push_back(local.guard().token().value());
        local.release();
        co_await foreign.got();
        foreign.release();
        co_await behind_foreign.got();
        tokens.push_back(behind_foreign.guard().token().value());
        CHECK(zk.stats().locks.held == 1);
        behind_foreign.release();
        const lock_stats all = co_await settled(zk);
        CHECK(all.granted == 3);
        CHECK(all.handed_over_locally == 1);
        CHECK(all.handed_over_remotely == 1);
        CHECK(all.held == 0);
        CHECK(all.lost_by(loss_reason::none) == 3);
        CHECK(all.waits.count() == 3);
        CHECK(all.holds.count() == 3);
        const lock_stats of_other = co_await settled(other);
        CHECK(of_other.granted == 1);
        CHECK(of_other.handed_over_remotely == 1);
        co_await other.close();
    };
    with_client(recorded_by(seen), body);
    seen->look();

    REQUIRE(seen->waits.size() == 3);
    std::vector<hand_over> from;
    std::vector<std::int64_t> told;
    for (const lock_wait_report& w : seen->waits) {
        CHECK(w.path == dir);
        CHECK(w.kind == lock_kind::exclusive);
        CHECK_FALSE(w.code);
        CHECK_FALSE(w.refused);
        CHECK(w.asked < w.ended);
        from.push_back(w.from);
        told.push_back(w.token);
    }
    CHECK(from == std::vector<hand_over>{hand_over::none, hand_over::local, hand_over::remote});
    CHECK(told == tokens);
    CHECK(seen->waits[0].queue_length == 0);
    CHECK(seen->waits[1].queue_length == 1);
    CHECK(seen->waits[2].queue_length >= 1);
    REQUIRE(seen->holds.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(seen->holds[i].path == dir);
        CHECK(seen->holds[i].token == tokens[i]);
        CHECK(seen->holds[i].lost == loss_reason::none);
        CHECK(seen->holds[i].granted == seen->waits[i].ended);
        CHECK(seen->holds[i].ended >= seen->holds[i].granted);
    }
}

TEST_CASE("lock reports: refused, cancelled, and lost because somebody deletes the node") {
    const auto seen = std::make_shared<recording_observer>();
    auto body = [&](const test_client& zk) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        const std::string dir = co_await fresh_directory(zk, "reports-refused");
        const mutex m(zk, dir);
        lock_guard guard = co_await m.acquire();
        const auto refused = co_await m.try_acquire();
        CHECK_FALSE(refused);
        taker waiting(executor, m.acquire());
        co_await until_queued(zk, dir, 2);
        waiting.cancel();
        co_await waiting.code();
        co_await zk.remove(guard.path());
        co_await guard.lost();
        guard = lock_guard();
        const lock_stats all = co_await settled(zk);
        CHECK(all.granted == 1);
        CHECK(all.refused == 2);
        CHECK(all.failed == 0);
        CHECK(all.held == 0);
        CHECK(all.lost_by(loss_reason::node_deleted) == 1);
        CHECK(all.lost_by(loss_reason::none) == 0);
    };
    with_client(recorded_by(seen), body);
    seen->look();
    REQUIRE(seen->waits.size() == 3);
    CHECK(seen->waits[1].refused);
    CHECK(seen->waits[1].token == 0);
    CHECK(seen->waits[2].refused);
    REQUIRE(seen->holds.size() == 1);
    CHECK(seen->holds.front().lost == loss_reason::node_deleted);
}

TEST_CASE("lock reports: the session expires under a holder and a waiter") {
    auto body = [&](const test_client& zk) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        const std::string dir = co_await fresh_directory(zk, "reports-expired");
        const mutex m(zk, dir);
        lock_guard guard = co_await m.acquire();
        taker waiting(executor, m.acquire());
        co_await until_queued(zk, dir, 2);
        co_await expire_session(zk);
        co_await guard.lost();
        co_await waiting.code();
        CHECK(zk.stats().sessions_expired == 1);
        CHECK(zk.stats().locks.failed == 1);
        CHECK(zk.stats().locks.held == 1);  // its guard is still there
        guard = lock_guard();
        co_await zk.connected();
        const lock_stats all = co_await settled(zk);
        CHECK(all.held == 0);
        CHECK(all.lost_by(loss_reason::session_expired) == 1);
    };
    with_client(body);
}

TEST_CASE("lock reports: every kind of lock counts what it grants and what it takes back", "[any-server]") {
    auto body = [&](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "reports-kinds");
        {
            const shared_mutex rw(zk, dir + "/rw");
            lock_guard writing = co_await rw.acquire();
            lock_guard reading = co_await rw.downgrade(std::move(writing));
            CHECK(zk.stats().locks.held == 1);
            const lock_guard more = co_await rw.acquire_shared();
            CHECK(zk.stats().locks.held == 2);
        }
        lock_stats all = co_await settled(zk);
        CHECK(all.granted == 3);
        CHECK(all.held == 0);
        {
            multi_mutex both(zk);
            both.add(mutex(zk, dir + "/m1"));
            both.add(mutex(zk, dir + "/m2"));
            const lock_guard guard = co_await both.acquire();
            CHECK(zk.stats().locks.held == 2);  // one a part
        }
        all = co_await settled(zk);
        CHECK(all.granted == 5);
        CHECK(all.held == 0);
        {
            const unfair_mutex u(zk, dir + "/unfair");
            const lock_guard guard = co_await u.acquire();
            co_await zk.exists("/");  // it is counted on the strand
            CHECK(zk.stats().locks.held == 1);
            const auto refused = co_await u.try_acquire();
            CHECK_FALSE(refused);
        }
        all = co_await settled(zk);
        CHECK(all.granted == 6);
        CHECK(all.refused == 1);
        CHECK(all.held == 0);
        {
            const semaphore s(zk, dir + "/permits", permits::fixed(3));
            const lock_guard guard = co_await s.acquire();
            const std::vector<lock_guard> two = co_await s.acquire_each(2);
            co_await zk.exists("/");  // they are counted on the strand
            CHECK(zk.stats().locks.held == 3);
        }
        all = co_await settled(zk);
        CHECK(all.granted == 6 + 3);
        CHECK(all.held == 0);
        CHECK(all.lost_by(loss_reason::none) == all.granted);
    };
    with_client(body);
}
