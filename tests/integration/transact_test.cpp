#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/modify.hpp>
#include <zkasio/transact/transact.hpp>

#include <asio/strand.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_future.hpp>

#include <cstddef>
#include <future>
#include <optional>
#include <string>
#include <vector>

namespace transact_tests {

using namespace zkasio;
using namespace zkasio::test;

namespace {

using seen = std::optional<node_data>;

constexpr int accounts = 5, each = 100;

std::string account(const std::string& dir, int n) { return dir + "/account-" + std::to_string(n % accounts); }

asio::awaitable<void> open_accounts(client zk, std::string dir) {
    for (int n = 0; n < accounts; ++n) co_await zk.create(account(dir, n), std::to_string(each));
}

// Each round moves 1 between two accounts, and counts itself.
asio::awaitable<void> transfer(client zk, std::string dir, int first, int rounds) {
    const auto one_more = [](std::optional<node_data> n) {
        return std::optional<std::string>(std::to_string(n ? std::stoi(n->data) + 1 : 1));
    };
    for (int i = first; i < first + rounds; ++i) {
        const std::vector<std::string> both{account(dir, i), account(dir, i + 1 + i % 3)};
        const auto body = [&](unit& u) -> asio::awaitable<void> {
            const std::vector<seen> now = co_await u.get_all(both);
            u.set(both[0], std::to_string(std::stoi(now[0]->data) - 1));
            u.set(both[1], std::to_string(std::stoi(now[1]->data) + 1));
        };
        const transact_options how = transact_options().receipts(dir + "/receipts").promote_to(dir + "/turns");
        co_await transact(zk, body, how);
        co_await modify(zk, dir + "/done", one_more, modify_options().receipts(dir + "/receipts"));
    }
}

asio::awaitable<int> sum_of_all(client zk, std::string dir) {
    std::vector<std::string> paths;
    for (int n = 0; n < accounts; ++n) paths.push_back(account(dir, n));
    const auto body = [&](unit& u) -> asio::awaitable<int> {
        const std::vector<seen> now = co_await u.get_all(paths);
        int sum = 0;
        for (const seen& n : now) sum += std::stoi(n->data);
        co_return sum;
    };
    co_return co_await transact(zk, body);
}

}  // namespace

TEST_CASE("transact: two clients transfer between accounts, and each look at all of them is one moment") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "transact");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        co_await open_accounts(zk, dir);
        const running one(executor, transfer(zk, dir, 0, 20)), two(executor, transfer(other, dir, 1, 20));
        while (!one.ended() || !two.ended()) {
            const int sum = co_await sum_of_all(zk, dir);
            CHECK(sum == accounts * each);
        }
        std::error_code code = co_await one.code();
        CHECK_FALSE(code);
        code = co_await two.code();
        CHECK_FALSE(code);
        const node_data done = co_await zk.get(dir + "/done");
        CHECK(done.data == "40");
        const int sum = co_await sum_of_all(other, dir);
        CHECK(sum == accounts * each);
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("transact: nodes that come and go, and a lock that is checked with them", "[any-server]") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "transact-nodes");
        const mutex orders(zk, dir + "/lock");
        lock_guard guard = co_await orders.acquire();
        const transact_options how = transact_options().under(guard).receipts(dir + "/receipts");
        const auto rename = [&](unit& u) -> asio::awaitable<bool> {
            const seen from = co_await u.get(dir + "/from");
            const seen to = co_await u.get(dir + "/deep/to");
            if (!from || to) co_return false;
            u.remove(dir + "/from");
            u.create(dir + "/deep");
            u.create(dir + "/deep/to", from->data);
            co_return true;
        };
        bool done = co_await transact(zk, rename, how);
        CHECK_FALSE(done);
        co_await zk.create(dir + "/from", "x");
        done = co_await transact(zk, rename, how);
        CHECK(done);
        const node_data renamed = co_await zk.get(dir + "/deep/to");
        CHECK(renamed.data == "x");
        done = co_await transact(zk, rename, how);
        CHECK_FALSE(done);
        const std::string node = guard.path();
        co_await zk.remove(node);
        const std::error_code lost = co_await code_of(transact(zk, rename, how));
        CHECK(lost == errc::lock_lost);
        CHECK_FALSE(guard.held());
        co_await guard.release();
    };
    with_client(body);
}

TEST_CASE("transact: coroutines on several threads", "[real-threads]") {
    asio::thread_pool pool(4);
    const client zk(asio::any_io_executor(pool.get_executor()), options());
    const client other(asio::any_io_executor(pool.get_executor()), options());
    const auto prepare = [&]() -> asio::awaitable<std::string> {
        std::string dir = co_await fresh_directory(zk, "transact-threads");
        co_await open_accounts(zk, dir);
        co_return dir;
    };
    const std::string dir = asio::co_spawn(pool, prepare(), asio::use_future).get();
    constexpr int tasks = 8, times = 10;
    std::vector<std::future<void>> ended;
    for (int i = 0; i < tasks; ++i)
        ended.push_back(asio::co_spawn(asio::make_strand(pool.get_executor()),
                                       transfer(i % 2 ? zk : other, dir, i, times), asio::use_future));
    for (int i = 0; i < 10; ++i) {
        const int sum = asio::co_spawn(pool, sum_of_all(zk, dir), asio::use_future).get();
        CHECK(sum == accounts * each);
    }
    for (std::future<void>& f : ended) f.get();
    const node_data done = asio::co_spawn(pool, zk.get(dir + "/done"), asio::use_future).get();
    CHECK(done.data == std::to_string(tasks * times));
    asio::co_spawn(pool, zk.close(), asio::use_future).get();
    asio::co_spawn(pool, other.close(), asio::use_future).get();
    pool.join();
}

}  // namespace transact_tests
