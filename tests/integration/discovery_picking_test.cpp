#include "integration/discovery_steps.hpp"
#include "support/lock_checks.hpp"

#include <zkasio/recipe/toolbox.hpp>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("provider: a thousand instances come and go while threads pick", "[real-threads]") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "provider-threads");
        co_await write_instance(zk, dir, instance_of("orders", "stays"));
        const provider orders(zk, dir, "orders", provider_options().strategy(pick_strategy::least_outstanding()));
        co_await until_ids(orders, set_of("stays"));
        std::atomic<bool> stop{false};
        std::atomic<int> wrong{0};
        std::atomic<long> picks{0};
        std::vector<std::thread> threads;
        for (int i = 0; i < 3; ++i)
            threads.emplace_back([&, i] {
                std::vector<picked> held;
                for (int n = 0; !stop; ++n) {
                    picked p = i == 0 ? orders.try_pick_for(std::to_string(n)) : orders.try_pick();
                    if (!p || p->address() != "10.0.0.1" || p.outstanding() == 0) ++wrong;
                    if (n % 50 == 0) p.report_failure();
                    held.push_back(std::move(p));
                    if (held.size() == 7) held.erase(held.begin() + n % 7);
                    ++picks;
                }
            });
        for (int batch = 0; batch < 10; ++batch) {
            std::vector<pending_create> creating;
            for (int i = 0; i < 100; ++i) {
                const service_instance is = instance_of("orders", std::to_string(batch * 100 + i));
                creating.push_back(
                    toolbox(zk).start_create(dir + "/orders/" + is.id(), is.to_json(), create_options()));
            }
            for (const pending_create& p : creating) co_await p.result();
        }
        const auto all = [](const service_view& v) { return v.instances().size() == 1001; };
        co_await until_seen(orders, all);
        for (int i = 0; i < 1000; i += 100) {
            std::vector<pending_removal> removing;
            for (int j = i; j < i + 100; ++j)
                removing.push_back(toolbox(zk).ensure_removed(dir + "/orders/" + std::to_string(j)));
            for (const pending_removal& p : removing) co_await p.result();
        }
        co_await until_ids(orders, set_of("stays"));
        stop = true;
        for (std::thread& t : threads) t.join();
        CHECK(wrong == 0);
        CHECK(picks > 0);
        const picked last = orders.try_pick();
        CHECK(last.outstanding() == 1);
        co_await orders.close();
    };
    with_client(body);
}

TEST_CASE("provider: cancelled at each await") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "provider-cancel");
        const service_instance is = instance_of("orders", "a");
        int picks = 0;
        std::function<asio::awaitable<void>()> attempt = [&]() -> asio::awaitable<void> {
            const provider orders(zk, dir, "orders");
            co_await orders.ready();
            co_await write_instance(zk, dir, is);
            const picked p = co_await orders.pick();
            if (p.outstanding() != 1) throw std::runtime_error("a pick that was cancelled counts");
            ++picks;
            co_await zk.remove(dir + "/orders/a");
            while (!orders.view().instances().empty()) {
                const service_view seen = orders.view();
                co_await orders.changed(seen);
            }
            co_await orders.close();
        };
        const int cancelled = co_await cancel_everywhere(attempt);
        CHECK(cancelled > 5);
        CHECK(picks >= 3);
        co_await zk.idle();
        CHECK(watched_below(dir).empty());
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("provider: closing the client ends it and one that was moved from") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "provider-close");
        CHECK_THROWS_AS(provider(zk, dir, "a/b"), error);
        CHECK_THROWS_AS(provider(zk, dir, ""), error);
        CHECK_THROWS_AS(provider(zk, "nothing", "a"), error);
        CHECK_THROWS_AS(provider(zk, dir, "a", provider_options().strategy(pick_strategy::weighted(nullptr))), error);
        provider moved(zk, dir, "orders");
        provider orders = std::move(moved);
        co_await orders.ready();
        const std::error_code empty = co_await code_of(moved.pick());
        CHECK(empty == errc::invalid_argument);
        CHECK_FALSE(moved.try_pick());
        CHECK(moved.view().version() == 0);
        moved = provider(registry(zk, dir), "others");
        co_await moved.ready();

        auto wait = [&]() -> asio::awaitable<void> { co_await orders.pick(); };
        const running waiting(co_await asio::this_coro::executor, wait());
        co_await zk.close();
        const std::error_code code = co_await waiting.code();
        CHECK(code == errc::client_closed);
        const std::error_code later = co_await code_of(orders.pick());
        CHECK(later == errc::client_closed);
        CHECK_FALSE(orders.view().current());
    };
    with_client(body);
}
