// cohort_mutex over a fake_ensemble: cancellations, cuts, expiries, lost answers and operators at each step.

#include "support/catch.hpp"
#include "support/late_executor.hpp"
#include "support/recording_observer.hpp"
#include "support/test_client.hpp"
#include "testing/cohort_mutex_scene.hpp"
#include "testing/steps.hpp"

#include <zkasio/error.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/post.hpp>
#include <asio/this_coro.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cohort_mutex_faults_tests {

using namespace zkasio;
using namespace zkasio::test;
using namespace zkasio::test::cohort;

namespace {

cohort_mutex_options short_tenures() { return cohort_mutex_options().turns(2).linger(20ms); }

acquire_options over_sessions() { return acquire_options().survive_expiry(); }

// Takes the lock so often, whatever happens, and watches over each guard while it has it.
asio::awaitable<void> persevere(fake_ensemble& e, witness& all, const lockable& lock, int times) {
    for (int i = 0; i < times; ++i) {
        lock_guard guard = co_await lock.acquire(over_sessions());
        all.has(guard);
        co_await turns(e, 2);
        all.gives_up(guard);
        co_await guard.release();
    }
}

using disturbance = std::function<void(fake_ensemble&, const client&, const client&)>;

// Two clients with cohorts, and a mutex of one of them. `disturb` is called after step `at`. Returns how many steps
// there were.
std::size_t play(std::uint64_t seed, std::size_t at, const disturbance& disturb, bool operators = false) {
    fake_ensemble e(seed);
    if (seed % 3 == 0) e.lag();
    const client one = e.client(calm()), two = e.client(calm());
    witness all(e, operators);
    std::size_t steps = 0;
    auto body = [&]() -> asio::awaitable<void> {
        co_await one.connected();
        co_await two.connected();
        at_step(e, steps, at, [&] { disturb(e, one, two); });
        const cohort_mutex ours(one, path, short_tenures()), theirs(two, path, short_tenures());
        const mutex plain(two, path);
        std::vector<running> tasks;
        for (int i = 0; i < 3; ++i) tasks.emplace_back(e.get_executor(), persevere(e, all, ours, 2));
        for (int i = 0; i < 3; ++i) tasks.emplace_back(e.get_executor(), persevere(e, all, theirs, 2));
        tasks.emplace_back(e.get_executor(), persevere(e, all, plain, 2));
        for (running& task : tasks) {
            const std::exception_ptr failed = co_await task.end();
            CHECK_FALSE(failed);
        }
        e.on_step(nullptr);
        co_await pause(e, 1min);
        CHECK(e.children(path).empty());
        CHECK(e.watches() == 0);
        co_await one.close();
        co_await two.close();
    };
    e.run(body);
    e.run_dry();
    return steps;
}

void play_at_each_step(std::uint64_t seeds, const disturbance& disturb, bool operators = false) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const std::size_t steps = play(seed, 1'000'000, disturb, operators);
        REQUIRE(steps > 30);
        for (std::size_t at = 0; at < steps; ++at) {
            INFO("seed " << seed << ", step " << at);
            play(seed, at, disturb, operators);
        }
    }
}

}  // namespace

TEST_CASE("cohort_mutex: a cut at any step", "[cohort]") {
    play_at_each_step(3, [](fake_ensemble& e, const client& one, const client&) { e.cut(one); });
}

TEST_CASE("cohort_mutex: a session that expires at any step", "[cohort]") {
    play_at_each_step(
        3, [](fake_ensemble& e, const client& one, const client&) { e.expire(one); }, true);
}

TEST_CASE("cohort_mutex: a client that is cut off at any step, until its session has expired", "[cohort]") {
    play_at_each_step(2, [](fake_ensemble& e, const client& one, const client&) {
        e.silence(one);
        const auto timer = std::make_shared<asio::steady_timer>(e.get_executor(), 30s);
        timer->async_wait([timer, &e, &one](std::error_code) { e.let_in(one); });
    });
}

TEST_CASE("cohort_mutex: an operator who deletes the first node at any step", "[cohort]") {
    play_at_each_step(
        3,
        [](fake_ensemble& e, const client&, const client&) {
            std::vector<std::string> nodes = e.children(path);
            const auto number = [](const std::string& name) { return name.substr(name.size() - 10); };
            std::sort(nodes.begin(), nodes.end(), [&](const auto& a, const auto& b) { return number(a) < number(b); });
            if (!nodes.empty()) e.remove(path + '/' + nodes.front());
        },
        true);
}

TEST_CASE("cohort_mutex: an operator who deletes the whole directory at any step", "[cohort]") {
    play_at_each_step(
        2,
        [](fake_ensemble& e, const client&, const client&) {
            for (const std::string& name : e.children(path)) e.remove(path + '/' + name);
            if (e.exists(path)) e.remove(path);
        },
        true);
}

TEST_CASE("cohort_mutex: lost answers", "[cohort]") {
    for (const char* request : {"create", "children", "multi", "remove", "get", "exists"})
        for (int times = 1; times <= 3; ++times) {
            INFO(request << ", " << times << " times");
            play(1, 0, [&](fake_ensemble& e, const client& one, const client& two) {
                for (int i = 0; i < times; ++i) e.lose_answer(one, request);
                e.lose_answer(two, request);
            });
        }
}

TEST_CASE("cohort_mutex: busy servers and connections that break", "[cohort]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("seed " << seed);
        play(seed, 0, [&](fake_ensemble& e, const client&, const client&) {
            e.throttle(20);
            e.lose_connections(static_cast<int>(seed % 5));
        });
    }
}

TEST_CASE("cohort_mutex: an acquire that is cancelled at any step leaves nothing", "[cohort]") {
    for (const bool cut : {false, true}) {
        for (const bool others : {false, true}) {
            std::size_t steps = 1000;
            for (std::size_t at = 0; at < std::min<std::size_t>(steps, 60); ++at) {
                INFO("cancelled after " << at << " steps" << (cut ? ", and cut" : "") << (others ? ", contended" : ""));
                fake_ensemble e(1 + at % 5);
                const client one = e.client(calm()), two = e.client(calm());
                auto body = [&]() -> asio::awaitable<void> {
                    co_await one.connected();
                    co_await two.connected();
                    const cohort_mutex ours(one, path, cohort_mutex_options().linger(0s));
                    const mutex theirs(two, path);
                    std::optional<lock_guard> other;
                    if (others) other = co_await theirs.acquire();
                    std::size_t step = 0;
                    std::optional<taking> first, second;
                    at_step(e, step, at, [&] {
                        if (cut) e.cut(one);
                        first->cancel();
                        if (second) second->cancel();
                    });
                    first.emplace(e, ours);
                    if (at % 2) second.emplace(e, ours);
                    for (std::size_t i = 0; others && i < 1000 && step <= at && !first->ended(); ++i)
                        co_await turns(e, 5);
                    if (others && !first->ended()) {  // all steps are past
                        first->cancel();
                        if (second) second->cancel();
                        steps = step;
                    }
                    const std::error_code code = co_await first->code();
                    if (!others) steps = step;
                    if (first->done())
                        first->guard() = lock_guard();
                    else
                        CHECK(code == asio::error::operation_aborted);
                    if (second) {
                        co_await second->code();
                        if (second->done()) second->guard() = lock_guard();
                    }
                    e.on_step(nullptr);
                    co_await one.idle();
                    CHECK(e.children(path).size() == (others ? 1 : 0));
                    other.reset();
                    co_await two.idle();
                    co_await turns(e);
                    CHECK(e.children(path).empty());
                    CHECK(e.watches() == 0);
                    const auto free = co_await ours.try_acquire();
                    CHECK(free);
                    co_await one.close();
                    co_await two.close();
                };
                e.run(body);
                e.run_dry();
            }
        }
    }
}

TEST_CASE("cohort_mutex: a coroutine that gives up in the middle of the queue leaves the others in their order",
          "[cohort]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const cohort_mutex lock(zk, path);
        std::optional<lock_guard> guard = co_await lock.acquire();
        std::deque<taking> waiting;
        for (int i = 0; i < 6; ++i) {
            waiting.emplace_back(e, lock);
            co_await turns(e);
        }
        for (const std::size_t at : {0U, 3U, 5U}) {
            waiting[at].cancel();
            const std::error_code code = co_await waiting[at].code();
            CHECK(code == asio::error::operation_aborted);
        }
        guard.reset();
        for (const std::size_t at : {1U, 2U, 4U}) {
            co_await waiting[at].code();
            REQUIRE(waiting[at].done());
            for (std::size_t later = at + 1; later < 5; ++later) CHECK((later == 3 || !waiting[later].ended()));
            waiting[at].guard() = lock_guard();
        }
        const lock_guard last = co_await lock.acquire();
        CHECK(last.token().turn() == 4);
        co_await zk.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: the loss of the place is the loss of the guard that has its turn, and of no other",
          "[cohort]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const cohort_mutex lock(zk, path);
        lock_guard past = co_await lock.acquire();
        taking has(e, lock), waits(e, lock);
        co_await turns(e);
        co_await past.release();
        co_await has.code();
        CHECK(has.guard().held());
        running tells(e.get_executor(), [](const lock_guard& g) -> asio::awaitable<void> {
            const loss_reason why = co_await g.lost();
            CHECK(why == loss_reason::node_deleted);
        }(has.guard()));
        co_await pause(e, 6s);  // from a quarter of the session timeout on, the holder watches its node
        const fencing_token before = has.guard().token();
        e.remove(has.guard().path());
        co_await tells.end();
        CHECK_FALSE(has.guard().held());
        CHECK(has.guard().reason() == loss_reason::node_deleted);
        CHECK(past.reason() == loss_reason::released);
        co_await waits.code();
        REQUIRE(waits.done());  // the lost guard may be kept
        CHECK(waits.guard().held());
        CHECK(waits.guard().token() > before);
        CHECK(waits.guard().token().turn() == 0);
        co_await has.guard().release();
        CHECK(waits.guard().held());
        co_await zk.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: as long as a body runs under a lost turn, no other coroutine has one", "[cohort]") {
    for (const bool releases : {false, true}) {
        fake_ensemble e;
        const client zk = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const cohort_mutex lock(zk, path);
            bool began = false;
            auto stubborn = [&](lock_guard& guard) -> asio::awaitable<void> {
                co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
                began = true;
                co_await pause(e, 1min);
                if (releases) co_await guard.release();
                co_await pause(e, 1min);
            };
            running works(e.get_executor(), lock.with_lock(stubborn));
            co_await turns(e);
            REQUIRE(began);
            co_await pause(e, 10s);
            e.remove(path + '/' + e.children(path).front());
            taking next(e, lock);
            co_await pause(e, 45s);
            CHECK_FALSE(next.ended());
            co_await pause(e, 10s);
            CHECK(next.ended() == releases);
            const std::error_code code = co_await works.code();
            CHECK(code == errc::lock_lost);
            co_await next.code();
            CHECK(next.done());
            co_await zk.close();
        };
        e.run(body);
        e.run_dry();
    }
}

// The bodies of a turn that was released are no bodies of the turns that follow under the same node.
TEST_CASE("cohort_mutex: a body that goes on after it has released its turn keeps nobody out", "[cohort]") {
    for (const bool waits_again : {false, true}) {
        INFO((waits_again ? "and waits for another turn" : "and does other work"));
        fake_ensemble e;
        const client zk = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const cohort_mutex lock(zk, path);
            std::optional<taking> second;
            bool again = false;
            auto releases = [&](lock_guard& guard) -> asio::awaitable<void> {
                second.emplace(e, lock);
                co_await turns(e);
                co_await guard.release();
                co_await second->code();
                if (!waits_again) co_return co_await pause(e, 1h);
                const lock_guard third = co_await lock.acquire();
                again = third.held();
            };
            running works(e.get_executor(), lock.with_lock(releases));
            co_await turns(e, 200);
            REQUIRE(second);
            REQUIRE(second->done());
            co_await pause(e, 6s);
            e.remove(second->guard().path());
            co_await pause(e, 1s);
            CHECK_FALSE(second->guard().held());
            if (waits_again) {
                const std::error_code failed = co_await works.code();
                CHECK_FALSE(failed);
                CHECK(again);
            } else {
                const auto third = co_await lock.try_acquire_for(1s);  // the lost guard of the second turn is kept
                CHECK(third);
                works.cancel();
                co_await works.code();
            }
            co_await zk.close();
        };
        e.run(body);
        e.run_dry();
    }
}

TEST_CASE("cohort_mutex: lost() that is awaited after the release tells of the release", "[cohort]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const cohort_mutex lock(zk, path, cohort_mutex_options().linger(1h));
        lock_guard guard = co_await lock.acquire();
        asio::awaitable<loss_reason> later = guard.lost();
        co_await guard.release();
        const auto begin = e.now();
        const loss_reason why = co_await std::move(later);
        CHECK(why == loss_reason::released);
        CHECK(e.now() - begin < 1s);
        co_await zk.close();
    };
    e.run(body, 2h);
    e.run_dry();
}

TEST_CASE("cohort_mutex: a body that begins when its turn was given up keeps nobody out", "[cohort]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const asio::any_io_executor here = co_await asio::this_coro::executor;
        const cohort_mutex lock(zk, path);
        lock_guard guard = co_await lock.acquire();
        const std::shared_ptr<lock_claim> claim = guard.claim();
        co_await guard.release();
        claim->body_begins(here);
        taking has(e, lock);
        co_await turns(e);
        REQUIRE(has.done());
        const std::error_code failed = co_await code_of(lock.try_acquire_for(1s));  // waits, and not for itself
        CHECK_FALSE(failed);
        claim->body_ends(here);
        co_await zk.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("run() that is awaited after the release does not begin", "[lock]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const cohort_mutex turns_of(zk, "/a");
        const mutex plain(zk, "/b");
        for (const lockable* lock : {static_cast<const lockable*>(&turns_of), static_cast<const lockable*>(&plain)}) {
            lock_guard guard = co_await lock->acquire();
            bool ran = false;
            auto works = [&]() -> asio::awaitable<void> {
                ran = true;
                co_return;
            };
            asio::awaitable<void> later = guard.run(works);
            co_await guard.release();
            const std::error_code code = co_await code_of(std::move(later));
            CHECK(code == errc::lock_released);
            CHECK_FALSE(ran);
        }
        co_await zk.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: a turn whose coroutine is destroyed by its executor goes to the next", "[cohort]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    const auto late = std::make_shared<late_handlers>();
    const late_executor executor(e.context(), late);
    auto body = [&]() -> asio::awaitable<void> {
        const cohort_mutex lock(zk, path);
        std::optional<lock_guard> guard = co_await lock.acquire();
        std::deque<running> dropped;  // their cancellation signals outlive them
        const auto acquire = [&]() -> asio::awaitable<void> { (void)co_await lock.acquire(); };
        // Many: one after the other is granted and dropped, without a recursion.
        for (int i = 0; i < 20'000; ++i) dropped.emplace_back(executor, acquire());
        late->run();
        taking last(e, lock);
        co_await turns(e);
        late->close();
        guard.reset();
        const std::error_code failed = co_await last.code();
        CHECK_FALSE(failed);
        REQUIRE(last.done());
        CHECK(last.guard().held());
        last.guard() = lock_guard();
        co_await zk.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: a body is cancelled when the place is lost", "[cohort]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const cohort_mutex lock(zk, path);
        bool cancelled = false;
        auto sleeps = [&](lock_guard&) -> asio::awaitable<void> {
            try {
                co_await pause(e, 1h);
            } catch (const std::system_error&) {
                cancelled = true;
            }
        };
        running works(e.get_executor(), lock.with_lock(sleeps));
        co_await turns(e);
        e.expire(zk);
        const std::error_code code = co_await works.code();
        CHECK(code == errc::lock_lost);
        CHECK(cancelled);
        co_await zk.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: waits end with their session unless they were asked to survive", "[cohort]") {
    fake_ensemble e;
    const client one = e.client(calm()), two = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const cohort_mutex ours(one, path), theirs(two, path);
        lock_guard guard = co_await ours.acquire();
        std::vector<std::string> order;
        std::deque<taking> waiting;
        for (int i = 0; i < 6; ++i) {
            waiting.emplace_back(e, theirs, i % 2 ? over_sessions() : acquire_options());
            co_await turns(e);
        }
        e.expire(two);
        for (const std::size_t i : {0U, 2U, 4U}) {
            const std::error_code code = co_await waiting[i].code();
            CHECK(code == errc::session_expired);
        }
        co_await pause(e, 1min);
        CHECK(e.children(path).size() == 2);
        co_await guard.release();
        for (const std::size_t i : {1U, 3U, 5U}) {
            co_await waiting[i].code();
            REQUIRE(waiting[i].done());  // in their old order
            CHECK(waiting[i].guard().held());
            waiting[i].guard() = lock_guard();
        }
        co_await one.close();
        co_await two.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: an acquire that begins in an outage waits for a connection no longer than it was told",
          "[cohort]") {
    fake_ensemble e;
    const client zk = e.client(calm().connection_timeout(2s));
    auto body = [&]() -> asio::awaitable<void> {
        const cohort_mutex lock(zk, path, cohort_mutex_options().tenure(1h));
        lock_guard guard = co_await lock.acquire();
        taking before(e, lock);
        co_await turns(e);
        e.hold_down(zk);
        co_await turns(e);
        for (int i = 0; i < 2; ++i) {
            const auto begin = e.now();
            taking during(e, lock);
            const std::error_code code = co_await during.code();
            CHECK(code == errc::not_connected);
            CHECK(e.now() - begin < 3s);
            if (before.done()) break;
            co_await guard.release();  // the lease lasts: the next turn needs no server
            co_await before.code();
            REQUIRE(before.done());
        }
        before.guard() = lock_guard();
        co_await pause(e, 10s);  // until the lease has ended
        taking idle(e, lock);
        const std::error_code code = co_await idle.code();
        CHECK(code == errc::not_connected);
        e.let_in(zk);
        const lock_guard after = co_await lock.acquire();
        CHECK(after.held());
        co_await zk.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: no turn begins at the very end of the lease", "[cohort]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("seed " << seed);
        fake_ensemble e(seed);
        const client zk = e.client(calm().connection_timeout(2s));
        auto body = [&]() -> asio::awaitable<void> {
            const cohort_mutex lock(zk, path, cohort_mutex_options().linger(1h));
            lock_guard guard = co_await lock.acquire();
            co_await pause(e, 1s);
            e.hold_down(zk);
            const boot_clock::time_point end = guard.held_until();
            co_await guard.release();
            asio::steady_timer timer(e.get_executor(), end - boot_clock::now());
            co_await timer.async_wait(asio::use_awaitable);
            CHECK(boot_clock::now() >= end);
            try {
                guard = co_await lock.acquire();
                CHECK(guard.held());
            } catch (const error& x) {
                CHECK(x.code() == errc::not_connected);
            }
            co_await zk.close();
        };
        e.run(body);
        e.run_dry();
    }
}

TEST_CASE("cohort_mutex: a loss is reported when it happens, with its reason", "[cohort]") {
    for (const bool expires : {false, true}) {
        INFO((expires ? "expired" : "deleted"));
        fake_ensemble e;
        const auto seen = std::make_shared<recording_observer>();
        const client zk = e.client(calm().observer(seen, seen->where.get_executor()));
        auto body = [&]() -> asio::awaitable<void> {
            const cohort_mutex lock(zk, path);
            lock_guard guard = co_await lock.acquire();
            running tells(e.get_executor(), [](const lock_guard& g) -> asio::awaitable<void> {
                co_await g.lost();
            }(guard));
            co_await pause(e, 6s);
            expires ? e.expire(zk) : e.remove(guard.path());
            co_await tells.end();
            co_await pause(e, 1s);
            const loss_reason why = guard.reason();
            // A watch may tell of the node's end before the client hears of its session's.
            CHECK((why == loss_reason::node_deleted || (expires && why == loss_reason::session_expired)));
            seen->look();
            REQUIRE(seen->holds.size() == 1);
            CHECK(seen->holds.front().lost == why);
            guard = lock_guard();
            co_await pause(e, 1s);
            seen->look();
            CHECK(seen->holds.size() == 1);
            co_await zk.close();
        };
        e.run(body);
        e.run_dry();
        seen->look();  // what waits there keeps the observer
    }
}

TEST_CASE("cohort_mutex: close() ends all waits, and frees the lock", "[cohort]") {
    for (std::size_t at = 0; at < 30; ++at) {
        INFO("closed after " << at << " steps");
        fake_ensemble e(at + 1);
        const client one = e.client(calm()), two = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            co_await two.connected();
            const cohort_mutex ours(one, path), theirs(two, path);
            taking a(e, ours), b(e, ours), c(e, ours);
            co_await turns(e, static_cast<int>(at));
            co_await one.close();
            for (taking* t : {&a, &b, &c}) {
                const std::error_code code = co_await t->code();
                if (t->done()) {
                    CHECK_FALSE(t->guard().held());
                    CHECK(t->guard().reason() == loss_reason::closed);
                } else {
                    CHECK(code == errc::client_closed);
                }
            }
            const lock_guard free = co_await theirs.acquire();
            CHECK(free.held());
            co_await two.close();
        };
        e.run(body);
        e.run_dry();
    }
}

TEST_CASE("cohort_mutex: the directory is refused, or has foreign children", "[cohort]") {
    fake_ensemble e;
    e.create(path + "/foreign");
    e.create("/closed");
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        co_await zk.connected();
        const cohort_mutex lock(zk, path);
        taking a(e, lock), b(e, lock);
        const std::error_code of_a = co_await a.code(), of_b = co_await b.code();
        CHECK(of_a == errc::foreign_child);
        CHECK(of_b == errc::foreign_child);
        e.remove(path + "/foreign");
        {
            const lock_guard guard = co_await lock.acquire();
            CHECK(guard.held());
        }
        e.refuse("/closed", zk_errc::no_auth);
        const cohort_mutex closed(zk, "/closed/lock");
        std::deque<taking> all;
        for (int i = 0; i < 3; ++i) all.emplace_back(e, closed);
        for (const taking& one : all) {
            const std::error_code refused = co_await one.code();
            CHECK(refused == zk_errc::no_auth);
        }
        const std::error_code again = co_await code_of(closed.acquire());  // asks anew
        CHECK(again == zk_errc::no_auth);
        co_await zk.close();
    };
    e.run(body);
    e.run_dry();
}

// A foreign child may be the contender of a program that names its nodes differently: such a program waits, too.
TEST_CASE("cohort_mutex: an idle place is given back when a foreign child appears, and the next acquire names it",
          "[cohort]") {
    for (const std::string name : {"foreign", "lock-", "x-lock-1"}) {
        INFO(name);
        fake_ensemble e;
        const client zk = e.client(calm());
        auto body = [&]() -> asio::awaitable<void> {
            const cohort_mutex lock(zk, path, cohort_mutex_options().linger(1h));
            std::optional<lock_guard> guard = co_await lock.acquire();
            guard.reset();
            co_await pause(e, 1s);
            CHECK(e.children(path).size() == 1);
            e.create(path + '/' + name);
            co_await pause(e, 1s);
            CHECK(e.children(path).size() == 1);
            CHECK(e.watches() == 0);
            for (int i = 0; i < 3; ++i) {
                const std::size_t before = e.requests(zk);
                const std::string told = co_await message_of(lock.acquire());
                CHECK(told.find('"' + name + '"') != std::string::npos);
                co_await turns(e);
                CHECK(e.requests(zk) - before <= 3);  // does not queue again and again
                CHECK(e.children(path).size() == 1);
            }
            e.remove(path + '/' + name);
            guard = co_await lock.acquire();
            CHECK(guard->held());
            co_await zk.close();
        };
        e.run(body);
        e.run_dry();
    }
}

TEST_CASE("cohort_mutex: foreign children that are allowed are no contenders that wait", "[cohort]") {
    fake_ensemble e;
    e.create(path + "/log_replicas");
    const client zk = e.client(calm()), other = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const name_scheme names = name_scheme::curator().allow_foreign_children();
        cohort_mutex_options how;
        how.linger(1h).turns(2).names(names);
        const cohort_mutex lock(zk, path, how);
        std::optional<lock_guard> guard = co_await lock.acquire();
        guard.reset();
        co_await pause(e, 1s);
        CHECK(e.children(path).size() == 2);
        e.create(path + "/another");
        co_await pause(e, 1s);
        CHECK(e.children(path).size() == 3);
        const auto before = e.traffic(zk).writes;
        for (int i = 0; i < 10; ++i) {
            guard = co_await lock.acquire();
            guard.reset();
            co_await turns(e);
        }
        CHECK(e.traffic(zk).writes == before);
        // A contender gets its turn, beside them.
        const mutex theirs(other, path, mutex_options().names(names));
        guard = co_await theirs.acquire();
        CHECK(guard->held());
        guard.reset();
        co_await zk.close();
        co_await other.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: a node that never goes costs a place for each tenure, and an idle place its linger()",
          "[cohort]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    witness all(e);
    auto body = [&]() -> asio::awaitable<void> {
        co_await zk.connected();
        const cohort_mutex lock(zk, path, cohort_mutex_options().linger(1h).turns(5).tenure(1h));
        {
            const lock_guard first = co_await lock.acquire();
            e.create(path + "/by-hand-lock-2000000000");  // behind all nodes that the servers number
        }
        co_await pause(e, 1s);
        CHECK(e.children(path).size() == 1);
        std::size_t before = e.requests(zk);
        std::vector<running> tasks;
        for (int i = 0; i < 10; ++i) tasks.emplace_back(e.get_executor(), all.work(lock, 5, "a"));
        for (running& task : tasks) co_await task.end();
        CHECK(all.done() == 50);
        co_await pause(e, 1s);
        CHECK(e.requests(zk) - before <= 80);  // ten places
        CHECK(e.children(path).size() == 1);
        co_await zk.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: without the right to list the directory, a cohort behaves as if others always waited",
          "[cohort]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const cohort_mutex lock(zk, path, cohort_mutex_options().turns(3));
        std::optional<lock_guard> guard = co_await lock.acquire();
        const std::string node = guard->path();
        e.refuse(path, zk_errc::no_auth);
        std::deque<taking> next;
        for (int i = 0; i < 3; ++i) {
            next.emplace_back(e, lock);
            co_await turns(e);
        }
        guard.reset();
        for (std::size_t i = 0; i < 2; ++i) {
            co_await next[i].code();
            REQUIRE(next[i].done());
            CHECK(next[i].guard().path() == node);
            next[i].guard() = lock_guard();
        }
        const std::error_code refused = co_await next[2].code();  // the place goes back to the end of the queue
        CHECK(refused == zk_errc::no_auth);
        co_await zk.close();
    };
    e.run(body);
    e.run_dry();
}

TEST_CASE("cohort_mutex: as a part of a multi_mutex", "[cohort]") {
    fake_ensemble e;
    const client zk = e.client(calm());
    auto body = [&]() -> asio::awaitable<void> {
        const cohort_mutex a(zk, "/a"), b(zk, "/b");
        multi_mutex both(zk);
        both.add(a).add(b);
        fencing_token last;
        for (int i = 0; i < 3; ++i) {
            const lock_guard guard = co_await both.acquire();
            CHECK(guard.held());
            CHECK(guard.token() > last);
            last = guard.token();
            const auto none = co_await a.try_acquire();
            CHECK_FALSE(none);
        }
        lock_guard guard = co_await both.acquire();
        taking next(e, a);
        co_await pause(e, 10s);
        e.remove(guard.paths().back());
        const loss_reason why = co_await guard.lost();
        CHECK(why == loss_reason::node_deleted);
        co_await next.code();
        CHECK(next.done());  // the turn at the other lock is given back with the lost one
        CHECK(next.guard().held());
        co_await zk.close();
    };
    e.run(body);
    e.run_dry();
}

}  // namespace cohort_mutex_faults_tests
