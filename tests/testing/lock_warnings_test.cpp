// What a client's log says of acquires and bodies that may be mistakes of their program.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/election/leader_election.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/slots.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/this_coro.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lock_warnings_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

using lines = std::vector<std::string>;

client_options logging_to(lines& to) {
    return calm().log([&to](const log_record& r) {
        if (r.level() >= log_level::warning) to.emplace_back(r.text());
    });
}

std::size_t naming(const lines& all, const std::string& what) {
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [&](const std::string& line) { return line.find(what) != std::string::npos; }));
}

}  // namespace

TEST_CASE("lock warnings: an acquire that waits for a guard of its own client is told once, and names it", "[locks]") {
    fake_ensemble ensemble;
    lines said;
    const client zk = ensemble.client(logging_to(said));
    const auto of = [&](auto lock) { return std::make_shared<const decltype(lock)>(std::move(lock)); };
    const std::shared_ptr<const lockable> kinds[] = {of(mutex(zk, "/m")),
                                                     of(shared_mutex(zk, "/s")),
                                                     of(unfair_mutex(zk, "/u")),
                                                     of(cohort_mutex(zk, "/c")),
                                                     of(semaphore(zk, "/p", permits::fixed(1)).request()),
                                                     of(semaphore(zk, "/p3", permits::fixed(3)).request(3)),
                                                     of(slots(zk, "/n", 1)),
                                                     of(slots(zk, "/r", 1, slots_options().quiet(1s)))};
    for (const auto& lock : kinds) {
        INFO(lock->path());
        said.clear();
        ensemble.run([&]() -> asio::awaitable<void> {
            lock_guard first = co_await lock->acquire();
            const auto again = [&]() -> asio::awaitable<void> { const lock_guard second = co_await lock->acquire(); };
            running waits(ensemble.get_executor(), again());
            co_await sleep_for(5s);
            CHECK(said.empty());
            co_await sleep_for(20s);
            CHECK(said.size() == 1);
            CHECK(naming(said, first.path()) == 1);
            co_await sleep_for(10min);
            CHECK(said.size() == 1);
            CHECK_FALSE(waits.ended());
            co_await first.release();
            co_await waits.end();
        });
    }
}

TEST_CASE("lock warnings: an unfair_mutex that waits for a persistent node of its name is told once", "[locks]") {
    fake_ensemble ensemble;
    lines said;
    const client zk = ensemble.client(logging_to(said));
    ensemble.create("/u");
    const unfair_mutex lock(zk, "/u");
    const auto take = [&]() -> asio::awaitable<void> { const lock_guard guard = co_await lock.acquire(); };
    running first(ensemble.get_executor(), take()), second(ensemble.get_executor(), take());
    ensemble.run_for(10min);
    ensemble.set("/u", "1");
    ensemble.run_for(10min);
    CHECK(naming(said, "acquire /u") == 1);
    CHECK(said.size() == 1);
    ensemble.remove("/u");
    CHECK_FALSE(ensemble.run(first.code(), 1min));
    CHECK_FALSE(ensemble.run(second.code(), 1min));
    CHECK(said.size() == 1);
}

// One node of the cohort serves all its guards and bodies.
TEST_CASE("lock warnings: a mutex behind a guard of a cohort_mutex is told, behind a busy cohort not", "[locks]") {
    enum class holder { guard, body, short_guards };
    for (const holder how : {holder::guard, holder::body, holder::short_guards}) {
        CAPTURE(static_cast<int>(how));
        fake_ensemble ensemble;
        lines said;
        const client zk = ensemble.client(logging_to(said));
        const cohort_mutex cohort(zk, "/l");
        ensemble.run([&]() -> asio::awaitable<void> {
            std::string node;
            const auto hold = [&]() -> asio::awaitable<void> {
                const lock_guard guard = co_await cohort.acquire();
                node = guard.path();
                co_await sleep_for(how == holder::guard ? 60s : 3s);
            };
            const auto body = [](lock_guard&) -> asio::awaitable<void> { co_await sleep_for(60s); };
            std::vector<running> work;
            if (how == holder::body) work.emplace_back(ensemble.get_executor(), cohort.with_lock(body));
            const int guards = how == holder::short_guards ? 20 : how == holder::guard ? 1 : 0;
            for (int i = 0; i < guards; ++i) work.emplace_back(ensemble.get_executor(), hold());
            co_await sleep_for(1s);
            std::optional<lock_guard> got = co_await mutex(zk, "/l").try_acquire_for(25s);
            CHECK((how == holder::short_guards || !got));
            got.reset();
            const bool told = how == holder::guard;
            CHECK(said.size() == (told ? 1u : 0u));
            if (told) CHECK(naming(said, node) == 1);
            for (const running& w : work) (void)co_await w.end();
        });
    }
}

TEST_CASE("lock warnings: bodies that take their turns, however long, are worth no word", "[locks]") {
    fake_ensemble ensemble;
    lines said;
    const client zk = ensemble.client(logging_to(said));
    const mutex m(zk, "/m");
    const unfair_mutex u(zk, "/u");
    ensemble.run([&]() -> asio::awaitable<void> {
        const auto body = [](lock_guard&) -> asio::awaitable<void> { co_await sleep_for(1min); };
        const auto work = [&](const lockable* lock) -> asio::awaitable<void> { co_await lock->with_lock(body); };
        const running a(ensemble.get_executor(), work(&m)), b(ensemble.get_executor(), work(&m)),
            c(ensemble.get_executor(), work(&u)), d(ensemble.get_executor(), work(&u));
        co_await b.end();
        co_await d.end();
        const auto guards = [&](const lockable* lock) -> asio::awaitable<void> {
            for (int i = 0; i < 30; ++i) {  // each for a moment
                const lock_guard guard = co_await lock->acquire();
                co_await sleep_for(1s);
            }
        };
        const running e(ensemble.get_executor(), guards(&m)), f(ensemble.get_executor(), guards(&m)),
            g(ensemble.get_executor(), guards(&u)), h(ensemble.get_executor(), guards(&u));
        for (const running* r : {&e, &f, &g, &h}) co_await r->end();
    });
    CHECK(said.empty());
}

TEST_CASE("lock warnings: bodies and short guards of cohorts, permits and numbers are worth no word", "[locks]") {
    fake_ensemble ensemble;
    lines said;
    const client zk = ensemble.client(logging_to(said));
    const cohort_mutex c(zk, "/c");
    const permit_request p = semaphore(zk, "/p", permits::fixed(1)).request();
    const slots n(zk, "/n", 1);
    ensemble.run([&]() -> asio::awaitable<void> {
        for (const lockable* lock : {static_cast<const lockable*>(&c), static_cast<const lockable*>(&p),
                                     static_cast<const lockable*>(&n)}) {
            const auto body = [](lock_guard&) -> asio::awaitable<void> { co_await sleep_for(1min); };
            const auto work = [&]() -> asio::awaitable<void> { co_await lock->with_lock(body); };
            const running first(ensemble.get_executor(), work()), second(ensemble.get_executor(), work());
            co_await first.end();
            co_await second.end();
            const auto guards = [&]() -> asio::awaitable<void> {
                for (int i = 0; i < 30; ++i) {
                    const lock_guard guard = co_await lock->acquire();
                    co_await sleep_for(1s);
                }
            };
            const running one(ensemble.get_executor(), guards()), other(ensemble.get_executor(), guards());
            co_await one.end();
            co_await other.end();
        }
    });
    CHECK(said.empty());
}

TEST_CASE("lock warnings: a wait for a permit or a number that another client may give back is not told", "[locks]") {
    fake_ensemble ensemble;
    lines said;
    const client zk = ensemble.client(logging_to(said)), other = ensemble.client(calm());
    ensemble.run([&]() -> asio::awaitable<void> {
        const semaphore two(zk, "/p", permits::fixed(2)), same(other, "/p", permits::fixed(2));
        const slots both(zk, "/n", 2), theirs(other, "/n", 2);
        const lock_guard permit = co_await two.acquire(), their_permit = co_await same.acquire();
        const lock_guard number = co_await both.acquire(), their_number = co_await theirs.acquire();
        const auto another = [&](const lockable* lock) -> asio::awaitable<void> {
            const lock_guard guard = co_await lock->acquire();
        };
        const permit_request request = two.request();
        running for_permit(ensemble.get_executor(), another(&request));
        running for_number(ensemble.get_executor(), another(&both));
        co_await sleep_for(1min);
        CHECK_FALSE(for_permit.ended());
        CHECK_FALSE(for_number.ended());
        for_permit.cancel();
        for_number.cancel();
        co_await for_permit.end();
        co_await for_number.end();
    });
    CHECK(said.empty());
}

TEST_CASE("lock warnings: a body that runs long after the loss of its lock is named", "[locks]") {
    fake_ensemble ensemble;
    lines said;
    const client zk = ensemble.client(logging_to(said));
    const mutex m(zk, "/m");
    ensemble.run([&]() -> asio::awaitable<void> {
        std::string node;
        const auto body = [&](lock_guard& guard) -> asio::awaitable<void> {
            node = guard.path();
            co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
            co_await sleep_for(1min);
        };
        const auto work = [&]() -> asio::awaitable<void> { co_await m.with_lock(body); };
        const running stuck(ensemble.get_executor(), work());
        co_await sleep_for(10s);
        ensemble.remove(node);
        co_await sleep_for(5s);
        CHECK(naming(said, node) == 0);
        co_await sleep_for(20s);
        CHECK(naming(said, "a body still runs") == 1);
        CHECK(naming(said, node) == 1);
        co_await stuck.end();
        CHECK(naming(said, "a body still runs") == 1);
    });
}

TEST_CASE("lock warnings: a nested lead() is told that it leads already", "[locks]") {
    fake_ensemble ensemble;
    const client zk = ensemble.client();
    const leader_election election(zk, "/e");
    ensemble.run([&]() -> asio::awaitable<void> {
        std::string hint;
        const auto inner = [](leadership&) -> asio::awaitable<void> { co_return; };
        const auto outer = [&](leadership&) -> asio::awaitable<void> {
            try {
                co_await election.lead(inner);
            } catch (const error& e) {
                CHECK(e.code() == errc::would_deadlock);
                hint = e.hint();
            }
        };
        co_await election.lead(outer);
        CHECK(hint.find("leads already") != std::string::npos);
        CHECK(hint.find("lock_owner") == std::string::npos);
    });
}

}  // namespace lock_warnings_tests
