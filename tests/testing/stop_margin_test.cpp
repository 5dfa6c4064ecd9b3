// Bodies that are stopped before their lease ends, over an ensemble in memory.

#include "support/catch.hpp"
#include "support/recording_observer.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/election/candidate.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/lock_owner.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/membership/partitioner.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

// Works until it is cancelled, and needs some time to stop.
struct slow_work {
    std::chrono::nanoseconds needs{};
    int begun = 0, ended = 0;
    boot_clock::time_point stopped{};
    bool owned_when_stopped = false, owned_at_its_end = false;

    asio::awaitable<void> operator()(std::function<bool()> owns) {
        ++begun;
        try {
            co_await sleep_for(24h);
        } catch (const std::system_error&) {
        }
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        stopped = boot_clock::now();
        owned_when_stopped = owns();
        co_await sleep_for(needs);
        owned_at_its_end = owns();
        ++ended;
        throw std::system_error(asio::error::operation_aborted);
    }
};

}  // namespace

TEST_CASE("stop margin: a body that is cut off ends before another client has the lock", "[testing]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        fake_ensemble ensemble(seed);
        const auto seen = std::make_shared<recording_observer>();
        const client zk = ensemble.client(sessions_of_ten_seconds().observer(seen, ensemble.get_executor()));
        const client other = ensemble.client(sessions_of_ten_seconds());
        const mutex lock(zk, "/lock"), same(other, "/lock");
        slow_work work;
        work.needs = 1900ms;
        boot_clock::time_point until{};
        bool other_has_it = false, both = false;
        auto body = [&](lock_guard& guard) -> asio::awaitable<void> {
            auto owns = [&] {
                until = guard.held_until();
                return guard.held();
            };
            co_await work(owns);
        };
        auto with_lock = [&]() -> asio::awaitable<void> {
            co_await lock.with_lock(body, with_lock_options().stop_margin(2s));
        };
        auto contend = [&]() -> asio::awaitable<void> {
            const lock_guard guard = co_await same.acquire();
            other_has_it = true;
            both = work.begun != work.ended;
        };
        running first(ensemble.get_executor(), with_lock());
        ensemble.run_for(1s);
        running second(ensemble.get_executor(), contend());
        ensemble.run_for(20s + seed * 137ms);
        CHECK(work.stopped == boot_clock::time_point());
        ensemble.silence(zk);
        CHECK(ensemble.run(first.code()) == errc::lock_lost);
        CHECK(work.ended == 1);
        CHECK(work.owned_when_stopped);
        CHECK(work.owned_at_its_end);
        CHECK(until - work.stopped > 1900ms);
        CHECK(until - work.stopped <= 2s);
        CHECK_FALSE(other_has_it);
        ensemble.run(second.code());
        CHECK_FALSE(both);
        ensemble.let_in(zk);
        ensemble.run_for(10s);
        REQUIRE(seen->stops.size() == 1);
        CHECK(seen->stops[0].margin == 2s);
        CHECK_FALSE(seen->stops[0].overran);
        CHECK(seen->stops[0].ended - seen->stops[0].stopped >= 1900ms);
        CHECK(zk.stats().locks.stops.count() == 1);
        CHECK(zk.stats().locks.overran == 0);
    }
}

TEST_CASE("stop margin: the lock is lost when the last of several bodies has ended", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const lock_guard guard = ensemble.run(mutex(zk, "/lock").acquire());
    slow_work quick, slow;
    slow.needs = 1900ms;
    auto run = [&](slow_work& work) -> asio::awaitable<void> {
        auto body = [&]() -> asio::awaitable<void> {
            auto owns = [&] { return guard.held(); };
            co_await work(owns);
        };
        co_await guard.run(body, 2s);
    };
    running first(ensemble.get_executor(), run(quick)), second(ensemble.get_executor(), run(slow));
    ensemble.run_for(5s);
    ensemble.silence(zk);
    CHECK(ensemble.run(first.code()) == errc::lock_lost);
    CHECK(quick.ended == 1);
    CHECK(guard.held());
    CHECK_FALSE(second.ended());
    ensemble.let_in(zk);  // the lease is renewed
    CHECK(ensemble.run(second.code()) == errc::lock_lost);
    CHECK(slow.owned_at_its_end);
    CHECK(guard.reason() == loss_reason::lease_ended);
    ensemble.run(zk.idle());
    CHECK(ensemble.children("/lock").empty());
}

TEST_CASE("stop margin: no body begins on a lease that is about to end", "[testing]") {
    const auto seed = GENERATE(range(std::uint64_t{1}, std::uint64_t{21}));
    CAPTURE(seed);
    fake_ensemble ensemble(seed);
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const cohort_mutex cohort(zk, "/lock");
    int begun = 0, completed = 0;
    auto body = [&](lock_guard&) -> asio::awaitable<void> {
        ++begun;
        co_await sleep_for(begun == 1 ? std::chrono::seconds(24h) : 1s);
        ++completed;
    };
    auto with_lock = [&]() -> asio::awaitable<void> {
        co_await cohort.with_lock(body, with_lock_options().stop_margin(2s));
    };
    // A lock that was idle for a moment: the cohort has looked, and knows that no other client contends.
    { const lock_guard guard = ensemble.run(cohort.acquire()); }
    ensemble.run_for(100ms);
    const running first(ensemble.get_executor(), with_lock());
    ensemble.run_for(1s);
    std::vector<running> others;
    for (int i = 1; i < 20; ++i) others.emplace_back(ensemble.get_executor(), with_lock());
    ensemble.run_for(5s);
    CHECK(begun == 1);
    ensemble.silence(zk);
    CHECK(ensemble.run(first.code()) == errc::lock_lost);
    ensemble.run_for(100ms);
    ensemble.let_in(zk);  // before the lease ends, for good
    for (const running& one : others) CHECK_FALSE(ensemble.run(one.code()));
    CHECK(completed == 19);
}

TEST_CASE("stop margin: no body begins if the lock is released while it waits for a longer lease", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    lock_guard guard = ensemble.run(mutex(zk, "/lock").acquire());
    ensemble.run_for(5s);
    ensemble.silence(zk);
    while (guard.held_until() - boot_clock::now() > 1s) ensemble.run_for(100ms);
    bool begun = false;
    auto body = [&]() -> asio::awaitable<void> {
        begun = true;
        co_return;
    };
    auto run = [&]() -> asio::awaitable<void> { co_await guard.run(body, 2s); };
    running waiting(ensemble.get_executor(), run());
    ensemble.run_for(100ms);
    CHECK_FALSE(waiting.ended());
    running releasing(ensemble.get_executor(), guard.release());
    CHECK(ensemble.run(waiting.code()) == errc::lock_released);
    CHECK_FALSE(begun);
    ensemble.let_in(zk);
    ensemble.run(releasing.code());
}

TEST_CASE("stop margin: a body that needs longer is reported", "[testing]") {
    fake_ensemble ensemble;
    const auto seen = std::make_shared<recording_observer>();
    const client zk = ensemble.client(sessions_of_ten_seconds().observer(seen, ensemble.get_executor()));
    const mutex lock(zk, "/lock");
    slow_work work;
    work.needs = 3s;
    std::string node;
    auto body = [&](lock_guard& guard) -> asio::awaitable<void> {
        node = guard.path();
        auto owns = [&] { return guard.held(); };
        co_await work(owns);
    };
    auto with_lock = [&]() -> asio::awaitable<void> {
        co_await lock.with_lock(body, with_lock_options().stop_margin(1s));
    };
    running first(ensemble.get_executor(), with_lock());
    ensemble.run_for(5s);
    ensemble.silence(zk);
    CHECK(ensemble.run(first.code()) == errc::lock_lost);
    CHECK(work.owned_when_stopped);
    CHECK_FALSE(work.owned_at_its_end);
    ensemble.let_in(zk);
    ensemble.run_for(10s);
    REQUIRE(seen->stops.size() == 1);
    CHECK(seen->stops[0].path == node);
    CHECK(seen->stops[0].overran);
    CHECK(zk.stats().locks.overran == 1);
}

TEST_CASE("stop margin: while the servers answer, no body is stopped", "[testing]") {
    using option = std::pair<std::chrono::milliseconds, lease_renewal>;
    for (const auto& [margin, often] :
         {option(1ms, lease_renewal::quarter), option(1000ms, lease_renewal::quarter),
          option(2500ms, lease_renewal::quarter), option(1ms, lease_renewal::third),
          option(1666ms, lease_renewal::third), option(0ms, lease_renewal::half)}) {
        CAPTURE(margin.count(), static_cast<int>(often));
        fake_ensemble ensemble;
        const client zk = ensemble.client(sessions_of_ten_seconds().lease_renewal(often));
        const mutex lock(zk, "/lock");
        auto body = [](lock_guard&) -> asio::awaitable<int> {
            co_await sleep_for(1h);
            co_return 7;
        };
        auto with_lock = [&]() -> asio::awaitable<int> {
            const int value = co_await lock.with_lock(body, with_lock_options().stop_margin(margin));
            co_return value;
        };
        CHECK(ensemble.run(with_lock(), 2h) == 7);
        CHECK(zk.stats().locks.stops.count() == 0);
        // A short outage, too.
        running again(ensemble.get_executor(), [](auto& f) -> asio::awaitable<void> { co_await f(); }(with_lock));
        ensemble.run_for(5s);
        ensemble.cut(zk);
        CHECK_FALSE(ensemble.run(again.code(), 2h));
    }
}

TEST_CASE("stop margin: a body that completes in time has completed", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const mutex lock(zk, "/lock");
    auto body = [](lock_guard&) -> asio::awaitable<int> {
        try {
            co_await sleep_for(24h);
        } catch (const std::system_error&) {
        }
        co_return 7;
    };
    int value = 0;
    auto with_lock = [&]() -> asio::awaitable<void> {
        value = co_await lock.with_lock(body, with_lock_options().stop_margin(2s));
    };
    running first(ensemble.get_executor(), with_lock());
    ensemble.run_for(5s);
    ensemble.silence(zk);
    ensemble.run_for(20s);
    ensemble.let_in(zk);
    CHECK_FALSE(ensemble.run(first.code()));
    CHECK(value == 7);
    ensemble.run(zk.idle());
    CHECK(ensemble.children("/lock").empty());
}

TEST_CASE("stop margin: what the body throws as it is stopped is nested", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const mutex lock(zk, "/lock");
    auto body = [](lock_guard&) -> asio::awaitable<void> {
        try {
            co_await sleep_for(24h);
        } catch (const std::system_error&) {
        }
        throw std::runtime_error("disk full");
    };
    auto with_lock = [&]() -> asio::awaitable<void> {
        co_await lock.with_lock(body, with_lock_options().stop_margin(2s));
    };
    running first(ensemble.get_executor(), with_lock());
    ensemble.run_for(5s);
    ensemble.silence(zk);
    const std::exception_ptr failed = ensemble.run(first.end());
    try {
        std::rethrow_exception(failed);
    } catch (const error& e) {
        CHECK(e.code() == errc::lock_lost);
        CHECK(e.hint() == "lease ended");
        CHECK_THROWS_AS(std::rethrow_if_nested(e), std::runtime_error);
    }
}

TEST_CASE("stop margin: of leaders, candidates, partitions and cohorts", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    slow_work work;
    work.needs = 1900ms;
    std::function<asio::awaitable<void>()> run;
    const leader_election election(zk, "/election");
    std::optional<candidate> me;
    const partitioner parts(zk, "/work", {"p"}, partitioner_options().stop_margin(2s));
    const cohort_mutex cohort(zk, "/cohort");
    auto lead = [&](const auto& owner) -> asio::awaitable<void> {
        auto owns = [&] { return owner.held(); };
        co_await work(owns);
    };
    bool again = true;
    SECTION("lead()") {
        run = [&]() -> asio::awaitable<void> { co_await election.lead(lead, lead_options().stop_margin(2s)); };
    }
    SECTION("candidate") {
        me.emplace(zk, "/election");
        run = [&]() -> asio::awaitable<void> { co_await me->run(lead, 2s); };
    }
    SECTION("partitioner") {
        run = [&]() -> asio::awaitable<void> { co_await parts.run(lead); };
    }
    SECTION("cohort_mutex") {
        again = false;
        run = [&]() -> asio::awaitable<void> {
            co_await cohort.with_lock(lead, with_lock_options().stop_margin(2s));
        };
    }
    running working(ensemble.get_executor(), run());
    ensemble.run_for(20s);
    CHECK(work.begun == 1);
    ensemble.silence(zk);
    ensemble.run_for(15s);
    CHECK(work.ended == 1);
    CHECK(work.owned_when_stopped);
    CHECK(work.owned_at_its_end);
    ensemble.let_in(zk);
    ensemble.run_for(30s);
    CHECK(zk.stats().locks.stops.count() == 1);
    CHECK(zk.stats().locks.overran == 0);
    CHECK(work.begun == (again ? 2 : 1));
    CHECK(working.ended() == !again);
    working.cancel();
    ensemble.run(working.code());
}

TEST_CASE("stop margin: a loss for another reason is no stop", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const mutex lock(zk, "/lock");
    std::string node;
    auto body = [&](lock_guard& guard) -> asio::awaitable<void> {
        node = guard.path();
        co_await sleep_for(24h);
    };
    auto with_lock = [&]() -> asio::awaitable<void> {
        co_await lock.with_lock(body, with_lock_options().stop_margin(2s));
    };
    running first(ensemble.get_executor(), with_lock());
    ensemble.run_for(5s);
    ensemble.remove(node);
    CHECK(ensemble.run(first.code()) == errc::lock_lost);
    CHECK(zk.stats().locks.stops.count() == 0);
    running second(ensemble.get_executor(), with_lock());
    ensemble.run_for(5s);
    second.cancel();
    CHECK(ensemble.run(second.code()) == asio::error::operation_aborted);
    CHECK(zk.stats().locks.stops.count() == 0);
    ensemble.run(zk.idle());
    CHECK(ensemble.children("/lock").empty());
}

TEST_CASE("stop margin: one that no lease has room for is refused before the body begins", "[testing]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const mutex lock(zk, "/lock");
    auto body = [](lock_guard&) -> asio::awaitable<void> {
        FAIL("begun");
        co_return;
    };
    const auto is_refused = [&](const mutex& on, std::chrono::milliseconds margin) {
        auto with_lock = [&]() -> asio::awaitable<void> {
            co_await on.with_lock(body, with_lock_options().stop_margin(margin));
        };
        return ensemble.run(code_of(with_lock())) == errc::invalid_argument;
    };
    for (const std::chrono::milliseconds margin : {-1ms, 2501ms}) CHECK(is_refused(lock, margin));
    const auto other = [&](lease_renewal often) {
        return mutex(ensemble.client(sessions_of_ten_seconds().lease_renewal(often)), "/other");
    };
    CHECK(is_refused(other(lease_renewal::third), 1667ms));
    CHECK(is_refused(other(lease_renewal::half), 1ms));
}

// A body that is stopped by the margin, and what its with_lock() fails with.
namespace {

std::error_code stopped_by_margin(const std::function<asio::awaitable<int>(lock_guard&)>& body, bool of_owner) {
    fake_ensemble ensemble;
    const client zk = ensemble.client(sessions_of_ten_seconds());
    const mutex lock(zk, "/lock");
    auto run = [&]() -> asio::awaitable<void> {
        const lock_owner owner;
        acquire_options how;
        lock_guard outer;
        if (of_owner) {
            how.owner(owner);
            outer = co_await lock.acquire(how);
        }
        auto silenced = [&](lock_guard& guard) -> asio::awaitable<int> {
            ensemble.silence(zk);
            const int result = co_await body(guard);
            co_return result;
        };
        (void)co_await lock.with_lock(silenced, with_lock_options().acquire(how).stop_margin(2s));
    };
    running task(ensemble.get_executor(), run());
    const std::error_code code = ensemble.run(task.code());
    ensemble.let_in(zk);
    ensemble.run_for(30s);
    return code;
}

}  // namespace

TEST_CASE("stop margin: a body that was cut off has not completed, whatever has become of its lock", "[testing]") {
    const auto waits = [](lock_guard&) -> asio::awaitable<int> {
        co_await sleep_for(24h);
        co_return 1;
    };
    const auto releases = [](lock_guard& guard) -> asio::awaitable<int> {
        const lock_guard mine = std::move(guard);
        co_await sleep_for(24h);
        co_return 1;
    };
    CHECK(stopped_by_margin(waits, false) == errc::lock_lost);
    CHECK(stopped_by_margin(releases, false) == errc::lock_lost);
    CHECK(stopped_by_margin(waits, true) == errc::lock_lost);
}
