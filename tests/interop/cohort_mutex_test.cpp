#include "interop/library.hpp"
#include "interop/line_up.hpp"
#include "interop/load.hpp"
#include "support/lock_directory.hpp"

#include <zkasio/locks/cohort_mutex.hpp>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace {

// Takes and releases the lock until it is told to stop.
asio::awaitable<void> take_again_and_again(cohort_mutex lock, std::shared_ptr<const bool> stop) {
    while (!*stop) {
        lock_guard guard = co_await lock.acquire();
        co_await guard.release();
    }
}

// ZKASIO_SOAK_SECONDS: the load is repeated for so long.
std::chrono::seconds soak_time() {
    const char* const given = std::getenv("ZKASIO_SOAK_SECONDS");
    return std::chrono::seconds(given ? std::atoi(given) : 0);
}

}  // namespace

TEST_CASE("cohort_mutex beside other libraries: places are first come, first served") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-cohort-hand-off");
        const auto executor = co_await asio::this_coro::executor;
        const test_client second(executor, options());
        all_peers all(executor);
        co_await all.ready();
        const std::vector<library> libraries_ = libraries(all);
        for (const library& theirs : libraries_) {
            line_up peer_first(zk, dir + "/peer-first/" + theirs.process.name());
            co_await peer_first.theirs(theirs);
            co_await peer_first.our_cohort(zk);
            co_await peer_first.theirs(theirs);
            co_await peer_first.our_cohort(second);
            co_await peer_first.drain();
            line_up ours_first(zk, dir + "/ours-first/" + theirs.process.name());
            co_await ours_first.our_cohort(zk);
            co_await ours_first.theirs(theirs);
            co_await ours_first.ours();
            co_await ours_first.our_cohort(second);
            co_await ours_first.theirs(theirs);
            co_await ours_first.drain();
        }
        co_await all.exit();
        co_await second.close();
    };
    with_client_for(120s, options(), body);
}

TEST_CASE("cohort_mutex beside other libraries: a place that lingers is given back when one of them comes") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-cohort-linger");
        all_peers all(co_await asio::this_coro::executor);
        co_await all.ready();
        const std::vector<library> libraries_ = libraries(all);
        for (const library& theirs : libraries_) {
            const std::string path = dir + "/" + theirs.process.name();
            const cohort_mutex lock(zk, path, cohort_mutex_options().linger(1h));
            fencing_token last;
            for (int i = 0; i < 3; ++i) {
                lock_guard guard = co_await lock.acquire();
                CHECK(guard.token() > last);
                last = guard.token();
                co_await guard.release();
                const std::size_t kept = co_await count_children(zk, path);
                CHECK(kept == 1);
                theirs.process.send("a acquire " + theirs.kind + " " + path);
                co_await theirs.process.acquired("a");
                co_await until_queued(zk, path, 1);
                theirs.process.send("a release");
                co_await theirs.process.expect("a", "released");
            }
        }
        co_await all.exit();
    };
    with_client_for(120s, options(), body);
}

TEST_CASE("cohort_mutex beside other libraries: coroutines that always want the lock do not keep it from them") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-cohort-fair");
        const auto executor = co_await asio::this_coro::executor;
        all_peers all(executor);
        co_await all.ready();
        const std::vector<library> libraries_ = libraries(all);
        const cohort_mutex lock(zk, dir, cohort_mutex_options().turns(16).linger(0s));
        const auto stop = std::make_shared<bool>(false);
        std::vector<running> ours;
        for (int i = 0; i < 4; ++i) ours.emplace_back(executor, take_again_and_again(lock, stop));
        for (int i = 0; i < 5; ++i) {
            for (const library& theirs : libraries_) {
                theirs.process.send("a acquire " + theirs.kind + " " + dir);
                co_await theirs.process.acquired("a");
                theirs.process.send("a release");
                co_await theirs.process.expect("a", "released");
            }
        }
        *stop = true;
        for (const running& r : ours) {
            const std::exception_ptr failed = co_await r.end();
            CHECK_FALSE(failed);
        }
        co_await all.exit();
    };
    with_client_for(120s, options(), body);
}

TEST_CASE("cohort_mutex beside other libraries: under load nobody is inside with us, or before their turn") {
    const std::chrono::seconds time = soak_time();
    auto body = [time](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-cohort-load");
        const auto executor = co_await asio::this_coro::executor;
        const auto end = std::chrono::steady_clock::now() + time;
        const test_client second(executor, options());
        all_peers all(executor);
        co_await all.ready();
        const std::vector<library> theirs = libraries(all);
        int rounds = 0;
        do {
            const std::string here = dir + "/" + std::to_string(rounds++);
            co_await zk.create(here);
            const int violations = co_await load_cohorts(zk, second, here, theirs);
            REQUIRE(violations == 0);
        } while (std::chrono::steady_clock::now() < end);
        if (time > 0s) WARN("rounds of load: " << rounds);
        co_await all.exit();
        co_await second.close();
    };
    with_client_for(180s + time, options(), body);
}
