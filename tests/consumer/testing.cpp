// A test of somebody else's service, with an installed zkasio's component testing: what docs/testing.md shows.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <zkasio/error.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/testing/fake_ensemble.hpp>
#include <zkasio/testing/waits.hpp>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace {

using namespace std::chrono_literals;

// [service]
// Of several processes that run this, one at a time bills, item by item.
class billing {
public:
    explicit billing(zkasio::client zk) : lock_(zk, "/billing/lock") {}

    asio::awaitable<void> run() {
        auto bill_all = [this](zkasio::lock_guard&) -> asio::awaitable<void> {
            asio::steady_timer timer(co_await asio::this_coro::executor);
            for (int item = 1; item <= 100; ++item) {
                timer.expires_after(1s);  // the work
                co_await timer.async_wait(asio::use_awaitable);
                ++billed;
            }
        };
        try {
            co_await lock_.with_lock(bill_all);
            state = "done";
        } catch (const zkasio::error& e) {
            state = e.code() == zkasio::errc::lock_lost ? "stopped in time" : e.what();
        }
    }

    int billed = 0;
    std::string state = "running";

private:
    zkasio::mutex lock_;
};
// [/service]

// [test]
TEST_CASE("billing stops before another process can begin, when its network is gone") {
    zkasio::testing::fake_ensemble ensemble;  // and its loop, and its time
    const auto options = zkasio::client_options("zk1,zk2,zk3").session_timeout(10s);
    const zkasio::client zk = ensemble.client(options), other_zk = ensemble.client(options);
    billing ours(zk), theirs(other_zk);
    asio::co_spawn(ensemble.context(), ours.run(), asio::detached);
    ensemble.run_for(5500ms);
    asio::co_spawn(ensemble.context(), theirs.run(), asio::detached);
    ensemble.run_for(1s);
    CHECK(ours.billed == 6);
    CHECK(theirs.billed == 0);
    CHECK(ensemble.children("/billing/lock").size() == 2);

    ensemble.hold_down(zk);
    while (ours.state == "running") ensemble.run_for(100ms);
    CHECK(ours.state == "stopped in time");
    CHECK(theirs.billed == 0);

    ensemble.run(zkasio::testing::until_children(other_zk, "/billing/lock",
                                                 [](const auto& names) { return names.size() == 1; }));
    ensemble.run_for(101s);
    CHECK(theirs.state == "done");
    CHECK(ours.billed < 20);
}

TEST_CASE("billing ends, whatever the network does") {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        INFO("seed " << seed);
        zkasio::testing::fake_ensemble ensemble(seed);
        ensemble.lose_connections(5);  // percent, with each step of the servers
        billing service(ensemble.client());
        ensemble.run(service.run());
        CHECK(service.state == "done");
        CHECK(service.billed == 100);
    }
}
// [/test]

}  // namespace
