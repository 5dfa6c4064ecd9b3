// cohort_mutex over a fake_ensemble: turns, tenures, lingering, and the promises of every lock.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/cohort_mutex_scene.hpp"
#include "testing/steps.hpp"

#include <zkasio/client_stats.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/lock_owner.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/revocation.hpp>
#include <zkasio/testing/fake_ensemble.hpp>
#include <zkasio/transaction.hpp>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace cohort_mutex_tests {

using namespace zkasio;
using namespace zkasio::test;
using namespace zkasio::test::cohort;

TEST_CASE("cohort_mutex: one node for all coroutines of a client, which take turns in the order in which they came",
          "[cohort]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const cohort_mutex lock(zk, path), same(zk, path);
        lock_guard first = co_await lock.acquire();
        CHECK(first.held());
        CHECK(first.token().turn() == 0);
        CHECK(e.owns(zk, first.path()));
        std::deque<taking> waiting;
        for (int i = 0; i < 5; ++i) {
            waiting.emplace_back(e, i % 2 ? lock : same);
            co_await turns(e);
        }
        CHECK(e.children(path).size() == 1);
        fencing_token last = first.token();
        for (std::size_t i = 0; i < waiting.size(); ++i) {
            CHECK_FALSE(waiting[i].ended());
            const std::size_t before = e.requests(zk);
            co_await first.release();
            CHECK_FALSE(first.held());
            const std::error_code failed = co_await waiting[i].code();
            CHECK(failed == std::error_code());
            REQUIRE(waiting[i].done());
            first = std::move(waiting[i].guard());
            CHECK(first.held());
            CHECK(first.token() > last);
            CHECK(first.token().value() == last.value());
            last = first.token();
            CHECK(e.requests(zk) <= before + 3);  // looks once whether others wait, and watches its node
        }
        co_await first.release();
        co_await pause(e, 500ms);
        CHECK(e.children(path).size() == 1);
        const std::size_t before = e.requests(zk);
        for (int i = 0; i < 100; ++i) {
            lock_guard again = co_await lock.acquire();
            CHECK(again.token() > last);
            last = again.token();
        }
        CHECK(e.requests(zk) == before);
        co_await pause(e, 990ms);
        CHECK(e.children(path).size() == 1);
        co_await pause(e, 20ms);
        CHECK(e.children(path).empty());
        CHECK(e.watches() == 0);
        co_await zk.close();
    };
    e.run(body);
    e.run_dry();
}

// The first coroutine looks for the cohort, or waits for a connection, when the second one comes.
TEST_CASE("cohort_mutex: first come, first served, also before there is a cohort", "[cohort]") {
    for (const bool outage : {false, true}) {
        std::size_t steps = 1;
        for (std::size_t at = 0; at < steps; ++at) {
            INFO((outage ? "in an outage" : "at first") << ", the second after " << at << " steps");
            fake_ensemble e(at + 1);
            const client zk = e.client(calm());
            auto body = [&]() -> asio::awaitable<void> {
                const cohort_mutex lock(zk, path);
                if (outage) {
                    co_await zk.connected();
                    e.hold_down(zk);
                    co_await turns(e);
                }
                std::optional<taking> second;
                const taking first(e, lock);
                co_await pause(e, 1us);
                at_step(e, steps, at, [&] { second.emplace(e, lock); });
                if (outage) e.let_in(zk);
                co_await pause(e, 2s);
                CHECK(first.done());
                e.on_step(nullptr);
                co_await zk.close();
            };
            e.run(body);
            e.run_dry();
        }
        CHECK(steps > 10);
    }
}

namespace {

cohort_mutex_options turns_of(std::uint64_t n) { return cohort_mutex_options().turns(n).tenure(1h); }

// The runs of grants of two clients, each with `coroutines` that take the lock three times.
std::string runs_of_two(std::uint64_t seed, const cohort_mutex_options& options, std::chrono::nanoseconds time,
                        int coroutines = 10) {
    fake_ensemble e(seed);
    const client one = e.client(calm()), two = e.client(calm());
    witness all(e);
    auto body = [&]() -> asio::awaitable<void> {
        co_await one.connected();
        co_await two.connected();
        const cohort_mutex ours(one, path, options), theirs(two, path, options);
        std::optional<lock_guard> first = co_await ours.acquire();
        std::vector<running> tasks;
        for (int i = 0; i < coroutines; ++i) {
            tasks.emplace_back(e.get_executor(), all.work(ours, 3, "a", time));
            tasks.emplace_back(e.get_executor(), all.work(theirs, 3, "b", time));
        }
        co_await turns(e, 200);
        first.reset();
        for (running& task : tasks) {
            const std::exception_ptr failed = co_await task.end();
            CHECK_FALSE(failed);
        }
        CHECK(all.done() == 6 * coroutines);
        co_await pause(e, 2s);
        CHECK(e.children(path).empty());
        CHECK(e.watches() == 0);
        co_await one.close();
        co_await two.close();
    };
    e.run(body);
    e.run_dry();
    return all.runs();
}

// linger() is a second unless set.
asio::awaitable<void> check_lingers_for_a_second(fake_ensemble& e) {
    co_await pause(e, 900ms);
    CHECK(e.children(path).size() == 1);
    co_await pause(e, 200ms);
    CHECK(e.children(path).empty());
}

}  // namespace

TEST_CASE("cohort_mutex: while another process waits, a place goes back to the end of the queue after so many turns",
          "[cohort]") {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        INFO("seed " << seed);
        // The first guard was the first of the seven turns.
        CHECK(runs_of_two(seed, turns_of(7), 0s) == "a6 b7 a7 b7 a7 b7 a7 b7 a3 b2");
        CHECK(runs_of_two(seed, turns_of(1), 0s, 2) == "b1 a1 b1 a1 b1 a1 b1 a1 b1 a1 b1 a1");
    }
}

TEST_CASE("cohort_mutex: while another process waits, a place goes back to the end of the queue after a time",
          "[cohort]") {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        INFO("seed " << seed);
        // The first guard has used the time up. A turn that has begun is not ended.
        const auto options = cohort_mutex_options().turns(1000).tenure(10ms);
        CHECK(runs_of_two(seed, options, 3ms, 3) == "b4 a4 b4 a4 b1 a1");
    }
}

TEST_CASE("cohort_mutex: a process that is alone keeps its place", "[cohort]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    witness all(e);
    auto body = [&]() -> asio::awaitable<void> {
        const cohort_mutex lock(zk, path, turns_of(3));
        std::string node;
        {
            const lock_guard first = co_await lock.acquire();
            node = first.path();
        }
        std::vector<running> tasks;
        const std::size_t before = e.requests(zk);
        for (int i = 0; i < 10; ++i) tasks.emplace_back(e.get_executor(), all.work(lock, 20, "a", 1ms));
        for (running& task : tasks) co_await task.end();
        CHECK(all.done() == 200);
        CHECK(e.requests(zk) <= before + 3);
        const lock_guard last = co_await lock.acquire();
        CHECK(last.path() == node);
        CHECK(last.token().turn() == 201);
        co_await zk.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: an idle place is given back when another contender appears", "[cohort]") {
    for (const bool same_client : {false, true}) {
        for (const bool as_mutex : {false, true}) {
            if (same_client && !as_mutex) continue;
            for (std::uint64_t seed = 1; seed <= 20; ++seed) {
                INFO((same_client ? "the same client, " : "another client, ")
                     << (as_mutex ? "mutex" : "cohort_mutex") << ", seed " << seed);
                fake_ensemble e(seed);
                if (seed % 3 == 0) e.lag();
                const client one = e.client(calm()), two = e.client(calm());
                auto body = [&]() -> asio::awaitable<void> {
                    co_await one.connected();
                    co_await two.connected();
                    const client& other = same_client ? one : two;
                    const cohort_mutex lock(one, path, cohort_mutex_options().linger(1h));
                    const cohort_mutex as_cohort(other, path);
                    const mutex as_plain(other, path);
                    const lockable& newcomer = as_mutex ? static_cast<const lockable&>(as_plain) : as_cohort;
                    fencing_token last;
                    for (int i = 0; i < 3; ++i) {
                        {
                            const lock_guard mine = co_await lock.acquire();
                            CHECK(mine.token() > last);
                            last = mine.token();
                        }
                        co_await turns(e, static_cast<int>(seed) * 3);
                        const auto begin = e.now();
                        const lock_guard theirs = co_await newcomer.acquire();
                        CHECK(e.now() - begin < 10ms);
                        CHECK(theirs.held());
                        CHECK(theirs.token() > last);
                        last = theirs.token();
                    }
                    co_await one.close();
                    co_await two.close();
                };
                e.run(body);
                e.run_dry();
            }
        }
    }
}

TEST_CASE("cohort_mutex: a place lingers for as long as it is told", "[cohort]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const cohort_mutex none(zk, "/a", cohort_mutex_options().linger(0s));
        lock_guard guard = co_await none.acquire();
        CHECK(e.children("/a").size() == 1);
        co_await guard.release();
        CHECK(e.children("/a").empty());  // the release completes when the node is gone
        const cohort_mutex some(zk, "/b", cohort_mutex_options().linger(10s));
        guard = co_await some.acquire();
        co_await pause(e, 1h);
        co_await guard.release();
        co_await pause(e, 6s);
        guard = co_await some.acquire();
        co_await guard.release();
        co_await pause(e, 9s);
        CHECK(e.children("/b").size() == 1);
        co_await pause(e, 1100ms);
        CHECK(e.children("/b").empty());
        CHECK(e.watches() == 0);
        co_await zk.close();
    };
    e.run(body, 3h);
    e.run_dry();
}

TEST_CASE("cohort_mutex: a place that lingers for ever is not given back under a turn", "[cohort]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const cohort_mutex lock(zk, "/a", cohort_mutex_options().linger(std::chrono::hours::max()));
        lock_guard guard = co_await lock.acquire();
        co_await guard.release();
        co_await pause(e, 30min);
        guard = co_await lock.acquire();
        co_await pause(e, 2h);
        CHECK(guard.held());
        co_await guard.release();
        co_await pause(e, 2h);
        CHECK(e.children("/a").size() == 1);
        co_await zk.close();
    };
    e.run(body, 6h);
    e.run_dry();
}

TEST_CASE("cohort_mutex: a place lingers for its time, also after one that was asked back", "[cohort]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const cohort_mutex lock(zk, path);
        lock_guard guard = co_await lock.acquire();
        guard = lock_guard();
        co_await turns(e);  // lingers
        guard = co_await lock.acquire();
        taking next(e, lock);
        const running asked(e.get_executor(), guard.revoke_requested());
        co_await turns(e);
        co_await revoke(zk, guard.path());
        co_await asked.code();
        guard = lock_guard();
        co_await next.code();
        REQUIRE(next.done());
        next.guard() = lock_guard();
        co_await check_lingers_for_a_second(e);
        co_await zk.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: a place lingers anew after a turn that was longer than linger()", "[cohort]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const cohort_mutex lock(zk, path);
        lock_guard guard = co_await lock.acquire();
        guard = lock_guard();
        co_await pause(e, 500ms);
        guard = co_await lock.acquire();
        co_await pause(e, 3s);
        guard = lock_guard();
        co_await check_lingers_for_a_second(e);
        co_await zk.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: what was known of other contenders goes with the place", "[cohort]") {
    fake_ensemble e;
    const client one = e.client(calm()), two = e.client(calm());
    witness all(e);
    auto body = [&]() -> asio::awaitable<void> {
        co_await two.connected();
        const cohort_mutex lock(one, path, cohort_mutex_options().turns(2).tenure(1h));
        const mutex other(two, path);
        {
            const lock_guard alone = co_await lock.acquire();
        }
        co_await pause(e, 2s);  // no other contender waited, and the place is gone
        CHECK(e.children(path).empty());
        std::vector<running> tasks;
        for (int i = 0; i < 3; ++i) tasks.emplace_back(e.get_executor(), all.work(lock, 50, "a", 1ms));
        co_await pause(e, 3ms);
        const taking waits(e, other);
        co_await pause(e, 20ms);
        CHECK(waits.done());
        CHECK(all.done() < 20);
        co_await one.close();
        co_await two.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: a place that came from another process goes back at its limit without a look (T2)",
          "[cohort]") {
    fake_ensemble e;
    const client one = e.client(calm()), two = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        co_await two.connected();
        const cohort_mutex ours(one, path, cohort_mutex_options().turns(2).tenure(1h));
        const mutex theirs(two, path);
        std::optional<lock_guard> first = co_await theirs.acquire();
        std::deque<taking> waiting;
        for (int i = 0; i < 5; ++i) {
            waiting.emplace_back(e, ours);
            co_await turns(e);
        }
        first.reset();
        std::vector<std::string> nodes;
        for (taking& next : waiting) {
            co_await next.code();
            REQUIRE(next.done());
            nodes.push_back(next.guard().path());
            next.guard() = lock_guard();
        }
        CHECK(nodes[1] == nodes[0]);
        CHECK(nodes[2] != nodes[1]);  // a wrong guess, once
        CHECK(nodes[3] == nodes[2]);
        CHECK(nodes[4] == nodes[3]);
        co_await one.close();
        co_await two.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: try_acquire ahead of an acquire does not wait for other processes", "[cohort]") {
    fake_ensemble e;
    const client one = e.client(calm()), two = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        co_await two.connected();
        const cohort_mutex ours(one, path, cohort_mutex_options().turns(1));
        const mutex theirs(two, path);
        lock_guard mine = co_await ours.acquire();
        taking next(e, theirs);
        co_await turns(e);
        bool refused = false;
        const auto attempt = [&]() -> asio::awaitable<void> {
            const std::optional<lock_guard> none = co_await ours.try_acquire();
            refused = !none;
        };
        mine = lock_guard();  // the cohort looks for other contenders
        const running first(e.get_executor(), attempt());
        taking behind(e, ours);
        co_await turns(e, 200);
        CHECK(next.done());
        CHECK(refused);
        CHECK_FALSE(behind.ended());
        if (next.done()) next.guard() = lock_guard();
        co_await behind.code();
        CHECK(behind.done());
        co_await one.close();
        co_await two.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: try_acquire is not refused because the place came from another process", "[cohort]") {
    fake_ensemble e;
    const client one = e.client(calm()), two = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        co_await two.connected();
        const cohort_mutex ours(one, path);
        const mutex theirs(two, path);
        std::optional<lock_guard> first = co_await theirs.acquire();
        taking next(e, ours);
        co_await turns(e);
        first.reset();
        co_await next.code();
        REQUIRE(next.done());
        co_await pause(e, 1s);  // longer than a tenure
        next.guard() = lock_guard();
        const std::optional<lock_guard> again = co_await ours.try_acquire();
        CHECK(again);
        co_await one.close();
        co_await two.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: try_acquire behind a coroutine that waits is refused at once", "[cohort]") {
    fake_ensemble e;
    const client one = e.client(calm()), two = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const cohort_mutex lock(one, path, cohort_mutex_options().turns(1));
        lock_guard mine = co_await lock.acquire();
        const taking next(e, lock);
        co_await turns(e);
        mine = lock_guard();  // no further turn until it is known that no other contender waits
        CHECK_FALSE(next.done());
        const std::optional<lock_guard> none = co_await lock.try_acquire();
        CHECK_FALSE(none);
        CHECK_FALSE(next.done());
        co_await turns(e);
        CHECK(next.done());
        co_await one.close();
        co_await two.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: options are checked", "[cohort]") {
    CHECK_THROWS_AS(cohort_mutex_options().turns(0), error);
    CHECK_THROWS_AS(cohort_mutex_options().tenure(-1s), error);
    CHECK_THROWS_AS(cohort_mutex_options().linger(-1s), error);
    CHECK(cohort_mutex_options().turns() == 64);
    CHECK(cohort_mutex_options().tenure() == 20ms);
    CHECK(cohort_mutex_options().linger() == 1s);
}

TEST_CASE("cohort_mutex: try_acquire and time limits", "[cohort]") {
    fake_ensemble e;
    const client one = e.client(calm()), two = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        co_await two.connected();
        const cohort_mutex ours(one, path), theirs(two, path);
        std::optional<lock_guard> mine = co_await ours.try_acquire();
        REQUIRE(mine);
        std::optional<lock_guard> none = co_await ours.try_acquire();
        CHECK_FALSE(none);
        none = co_await theirs.try_acquire();
        CHECK_FALSE(none);
        none = co_await ours.try_acquire_for(0s);
        CHECK_FALSE(none);
        auto begin = e.now();
        none = co_await theirs.try_acquire_for(3s);
        CHECK_FALSE(none);
        CHECK(e.now() - begin >= 3s);
        begin = e.now();
        none = co_await ours.try_acquire_for(3s);
        CHECK_FALSE(none);
        CHECK(e.now() - begin >= 3s);
        CHECK(e.children(path).size() == 1);
        mine.reset();
        mine = co_await ours.try_acquire();  // the place lingers
        CHECK(mine);
        mine.reset();
        mine = co_await ours.try_acquire_for(0s);
        CHECK(mine);
        taking next(e, theirs);
        co_await turns(e);
        mine.reset();
        co_await next.code();
        CHECK(next.done());
        none = co_await ours.try_acquire();
        CHECK_FALSE(none);
        next.guard() = lock_guard();
        co_await turns(e);
        mine = co_await ours.try_acquire_for(1s);  // calls the lingering place of the other client back
        CHECK(mine);
        co_await one.close();
        co_await two.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: a coroutine that would wait for itself is refused", "[cohort]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const cohort_mutex lock(zk, path);
        const mutex plain(zk, path);
        int ran = 0;
        auto again = [&](lock_guard& guard) -> asio::awaitable<void> {
            const std::error_code by_cohort = co_await code_of(lock.acquire());
            const std::error_code by_mutex = co_await code_of(plain.acquire());
            CHECK(by_cohort == errc::would_deadlock);
            CHECK(by_mutex == errc::would_deadlock);
            const auto refused = co_await lock.try_acquire();
            CHECK_FALSE(refused);
            co_await guard.release();
            const lock_guard after = co_await lock.acquire();
            CHECK(after.held());
            ++ran;
        };
        co_await lock.with_lock(again);
        std::optional<taking> outside;
        auto under_mutex = [&](lock_guard&) -> asio::awaitable<void> {
            const std::error_code first = co_await code_of(lock.acquire());
            CHECK(first == errc::would_deadlock);
            outside.emplace(e, lock);  // may wait
            const std::error_code code = co_await code_of(lock.acquire());
            CHECK(code == errc::would_deadlock);
            ++ran;
        };
        co_await plain.with_lock(under_mutex);
        CHECK(ran == 2);
        const std::error_code waited = co_await outside->code();
        CHECK_FALSE(waited);
        outside.reset();
        const lock_owner me;
        acquire_options as_me;
        as_me.owner(me);
        const lock_guard first = co_await lock.acquire(as_me);
        const lock_guard second = co_await lock.acquire(as_me), third = co_await plain.acquire(as_me);
        CHECK(second.token() == first.token());
        CHECK(third.token() == first.token());
        CHECK(second.held());
        co_await zk.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: commit, and a request to give the lock back", "[cohort]") {
    fake_ensemble e;
    const client zk = e.client(calm()), other = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const cohort_mutex lock(zk, path, cohort_mutex_options().linger(1h));
        lock_guard guard = co_await lock.acquire();
        const std::string node = guard.path();
        transaction step;
        step.create("/written");
        co_await guard.commit(step);
        CHECK(e.exists("/written"));
        taking next(e, lock);
        co_await turns(e);
        running asked(e.get_executor(), guard.revoke_requested());
        co_await turns(e);
        CHECK_FALSE(asked.ended());
        co_await revoke(other, node);
        const std::error_code code = co_await asked.code();
        CHECK_FALSE(code);
        CHECK(guard.held());
        co_await guard.release();
        const std::error_code released = co_await code_of(guard.commit(transaction()));
        CHECK(released == errc::lock_released);
        co_await next.code();
        REQUIRE(next.done());
        CHECK(next.guard().path() != node);  // at the end of the queue, with a new node
        CHECK_FALSE(e.exists(node));
        e.remove(next.guard().path());
        transaction again;
        again.create("/not-written");
        const std::error_code lost = co_await code_of(next.guard().commit(again));
        CHECK(lost == errc::lock_lost);
        CHECK_FALSE(next.guard().held());
        co_await zk.close();
        co_await other.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: client::idle() waits neither for a held turn nor for a place that lingers", "[cohort]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const cohort_mutex lock(zk, path, cohort_mutex_options().linger(1h));
        lock_guard guard = co_await lock.acquire();
        taking waits(e, lock);
        co_await turns(e);
        const auto begin = e.now();
        co_await zk.idle();
        co_await guard.release();
        co_await waits.code();
        waits.guard() = lock_guard();
        co_await turns(e);
        co_await zk.idle();
        CHECK(e.now() - begin < 1s);
        CHECK(e.children(path).size() == 1);
        co_await zk.close();
        CHECK(e.children(path).empty());
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: turns are counted as locks", "[cohort]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    witness all(e);
    auto body = [&]() -> asio::awaitable<void> {
        const cohort_mutex lock(zk, path);
        std::vector<running> tasks;
        for (int i = 0; i < 10; ++i) tasks.emplace_back(e.get_executor(), all.work(lock, 3, "a"));
        for (running& task : tasks) co_await task.end();
        const auto guard = co_await lock.acquire();
        const auto refused = co_await lock.try_acquire();
        taking cancelled(e, lock);
        co_await turns(e);
        cancelled.cancel();
        co_await cancelled.code();
        co_await turns(e);
        const client_stats seen = zk.stats();
        CHECK(seen.locks.granted == 31);
        CHECK(seen.locks.refused == 1);
        CHECK(seen.locks.failed == 1);
        CHECK(seen.locks.held == 1);
        co_await zk.close();
    };
    e.run(body);
    e.run_dry();
}

}  // namespace cohort_mutex_tests
