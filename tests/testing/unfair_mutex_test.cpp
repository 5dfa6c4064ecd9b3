// An unfair_mutex over servers that lag behind each other.

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/error.hpp>
#include <zkasio/locks/revocation.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/post.hpp>

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <system_error>

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

// The server of the one who releases may not have heard yet that an operator has deleted its node, and that there is
// another one of that name.
TEST_CASE("unfair_mutex: a release leaves the next holder's node alone after an operator's delete", "[unfair]") {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        INFO("seed " << seed);
        fake_ensemble ensemble(seed);
        ensemble.lag();
        const client a = ensemble.client(), b = ensemble.client();
        ensemble.run([&]() -> asio::awaitable<void> {
            co_await a.connected();
            co_await b.connected();
            const unfair_mutex first(a, "/l"), second(b, "/l");
            lock_guard deleted = co_await first.acquire();
            ensemble.remove("/l");
            lock_guard next = co_await second.acquire();
            co_await deleted.release();
            CHECK(ensemble.owns(b, "/l"));
            co_await next.release();
            CHECK_FALSE(ensemble.exists("/l"));
        });
    }
}

TEST_CASE("unfair_mutex: a free lock is got at once, also if the connection breaks around the create", "[unfair]") {
    for (int turns = 0; turns < 12; ++turns) {
        INFO("cut after " << turns << " turns");
        fake_ensemble ensemble;
        const client zk = ensemble.client(client_options("fake").session_timeout(20s));
        ensemble.run([&]() -> asio::awaitable<void> {
            co_await zk.connected();
            const unfair_mutex lock(zk, "/l");
            std::optional<lock_guard> guard;
            const auto attempt = [&]() -> asio::awaitable<void> { guard = co_await lock.try_acquire(); };
            running one(ensemble.get_executor(), attempt());
            for (int i = 0; i < turns; ++i) co_await asio::post(ensemble.get_executor(), asio::use_awaitable);
            ensemble.cut(zk);
            const std::exception_ptr failed = co_await one.end();
            CHECK_FALSE(failed);
            REQUIRE(guard);
            CHECK(ensemble.owns(zk, "/l"));
            co_await guard->release();
            co_await zk.close();
        });
    }
}

// Its directory belongs to its user, whatever the name of the lock's node looks like.
TEST_CASE("unfair_mutex: a request to give way never goes into the directory", "[unfair]") {
    for (const std::string path : {"/jobs/nightly", "/jobs/job-0000000042", "/jobs/host-latch-0000000001"})
        for (const holder_data how : {holder_data::kept, holder_data::replaced}) {
            INFO(path << (how == holder_data::kept ? ", kept" : ", replaced"));
            fake_ensemble ensemble;
            ensemble.create("/jobs", "");
            const client one = ensemble.client(), two = ensemble.client();
            ensemble.run([&]() -> asio::awaitable<void> {
                const lock_guard guard = co_await unfair_mutex(one, path).acquire();
                std::error_code failed;
                try {
                    co_await revoke(two, path, how);
                } catch (const error& e) {
                    failed = e.code();
                }
                if (how == holder_data::kept)
                    CHECK(failed == errc::invalid_argument);
                else
                    CHECK_FALSE(failed);
                CHECK((ensemble.data(path) == "__REVOKE__") == (how == holder_data::replaced));
                CHECK(ensemble.data("/jobs") == "");
            });
        }
}
