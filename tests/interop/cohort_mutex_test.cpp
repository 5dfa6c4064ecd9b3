#include "interop/library.hpp"
#include "interop/line_up.hpp"
#include "interop/load.hpp"
#include "support/lock_directory.hpp"

#include <zkasio/locks/cohort_mutex.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("cohort_mutex: a cohort and other libraries get the lock in the order in which their nodes came") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-cohort-hand-off");
        const auto executor = co_await asio::this_coro::executor;
        const test_client second(executor, options());
        all_peers all(executor);
        co_await all.ready();
        const std::vector<library> libraries_ = libraries(all);
        const cohort_mutex one(zk, dir), other(second, dir);
        const auto acquire = [&] { return one.acquire(); };
        const auto acquire_other = [&] { return other.acquire(); };
        line_up everybody(zk, dir);
        co_await everybody.theirs(libraries_[0]);
        co_await everybody.ours(acquire);
        co_await everybody.theirs(libraries_[1]);
        co_await everybody.theirs(libraries_[2]);
        co_await everybody.ours(acquire_other);
        co_await everybody.ours();  // a mutex of the first cohort's client
        co_await everybody.theirs(libraries_[0]);
        co_await everybody.drain();
        co_await all.exit();
        co_await second.close();
    };
    with_client_for(120s, options(), body);
}

TEST_CASE("cohort_mutex: an idle cohort gives the lock to another library, and gets it again behind it") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-cohort-idle");
        const auto executor = co_await asio::this_coro::executor;
        all_peers all(executor);
        co_await all.ready();
        const std::vector<library> libraries_ = libraries(all);
        const cohort_mutex lock(zk, dir, cohort_mutex_options().linger(1h));
        fencing_token last;
        for (const library& theirs : libraries_) {
            {
                const lock_guard guard = co_await lock.acquire();
                CHECK(guard.token() > last);
                last = guard.token();
            }
            co_await until_queued(zk, dir, 1);  // the place lingers
            theirs.process.send("a acquire " + theirs.kind + " " + dir);
            co_await theirs.process.acquired("a");
            our_contender ours(executor, [&] { return lock.acquire(); });
            ours.join();
            co_await until_queued(zk, dir, 2);
            co_await told_all(zk, dir);
            CHECK_FALSE(ours.has_it());
            theirs.process.send("a release");
            co_await theirs.process.expect("a", "released");
            co_await ours.acquired();
            co_await ours.release();
        }
        co_await all.exit();
    };
    with_client_for(120s, options(), body);
}

TEST_CASE("cohort_mutex: under load no other library is inside with a cohort") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-cohort-load");
        const auto executor = co_await asio::this_coro::executor;
        const test_client second(executor, options());
        all_peers all(executor);
        co_await all.ready();
        const std::vector<library> theirs = libraries(all);
        const auto make = [](client on, std::string path) {
            return std::make_unique<cohort_mutex>(std::move(on), std::move(path),
                                                  cohort_mutex_options().turns(4).tenure(5ms).linger(0s));
        };
        const int violations = co_await load_all(zk, second, dir, theirs, our_locks{make, 1});
        CHECK(violations == 0);
        co_await all.exit();
        co_await second.close();
    };
    with_client_for(180s, options(), body);
}
