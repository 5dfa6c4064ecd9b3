// cohort_mutex over a fake_ensemble: turns, tenures, lingering, and the promises of every lock.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/cohort_mutex_scene.hpp"
#include "testing/steps.hpp"

#include <zkasio/error.hpp>
#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <deque>
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
            CHECK(e.requests(zk) <= before + 2);  // looks once whether others wait
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

}  // namespace cohort_mutex_tests
