// A stock that is never oversold, however many customers there are, in three ways: flash_sale 127.0.0.1:2181
#include "expect.hpp"

#include <zkasio/coroutines/task_scope.hpp>
#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/transact/transact.hpp>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/this_coro.hpp>

#include <chrono>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

using namespace std::chrono_literals;

const std::string shop = "/flash-sale", orders = shop + "/orders";

zkasio::create_options numbered() { return zkasio::create_options().mode(zkasio::create_mode::persistent_sequential); }

// [lock]
// One customer after another. The lock is also checked when the order is written.
asio::awaitable<bool> buy_under_lock(zkasio::client zk) {
    const zkasio::mutex counter(zk, shop + "/lock");
    auto body = [&](zkasio::lock_guard& guard) -> asio::awaitable<bool> {
        const zkasio::node_data stock = co_await zk.get(shop + "/stock");
        const int left = std::stoi(stock.data);
        if (left == 0) co_return false;
        zkasio::transaction order;
        order.set(shop + "/stock", std::to_string(left - 1)).create(orders + "/lock-", "", numbered());
        co_await guard.commit(order);
        co_return true;
    };
    co_return co_await counter.with_lock(body);
}
// [/lock]

// [counter]
// const zkasio::atomic_counter stock(zk, "/shop/stock");
// Customers of one process are one write. The order is not part of that write.
asio::awaitable<bool> buy_by_counter(zkasio::atomic_counter stock) {
    const std::int64_t left = co_await stock.add(-1);
    co_return left >= 0;
}
// [/counter]

// [transact]
// No lock: if another customer was ahead, the body runs again. Stock and order change together, and exactly once.
asio::awaitable<bool> buy_by_transact(zkasio::client zk) {
    auto body = [](zkasio::unit& u) -> asio::awaitable<bool> {
        const auto stock = co_await u.get(shop + "/stock");
        const int left = stock ? std::stoi(stock->data) : 0;
        if (left == 0) co_return false;  // returned, not thrown: a result is true for all servers
        u.set(shop + "/stock", std::to_string(left - 1));
        u.create(orders + "/transact-", "", numbered());
        co_return true;
    };
    zkasio::transact_options how;
    how.receipts(shop + "/receipts").promote_to(shop + "/turns");
    co_return co_await zkasio::transact(zk, body, how);
}
// [/transact]

using purchase = std::function<asio::awaitable<bool>()>;

asio::awaitable<void> shop_for_a_while(purchase buy, int& sold) {
    for (bool bought = true; bought; sold += bought) bought = co_await buy();
}

// All customers buy until nothing is left.
asio::awaitable<void> sell_out(const char* way, std::vector<purchase> customers, int stock) {
    int sold = 0;
    const auto began = std::chrono::steady_clock::now();
    auto sale = [&](zkasio::task_scope& tasks) -> asio::awaitable<void> {
        for (const purchase& buy : customers) tasks.spawn(shop_for_a_while(buy, sold));
        co_return;
    };
    co_await zkasio::with_task_scope(sale);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    std::cout << way << ": " << sold << " sold, " << static_cast<int>(sold / took.count()) << " a second\n";
    expect(sold == stock, "as many are sold as there were");
}

asio::awaitable<void> sale(std::string servers) {
    constexpr int stock = 60, customers_of_each = 4;
    const auto executor = co_await asio::this_coro::executor;
    const auto options = zkasio::client_options(servers).session_timeout(10s);
    const std::vector<zkasio::client> processes{{executor, options}, {executor, options}, {executor, options}};
    const zkasio::client& zk = processes.front();
    co_await zk.remove_recursive(shop);
    co_await zk.create(shop);
    co_await zk.create(orders);

    std::vector<purchase> lock, counter, transact;
    for (const zkasio::client& process : processes)
        for (int i = 0; i < customers_of_each; ++i) {
            lock.push_back([process] { return buy_under_lock(process); });
            const zkasio::atomic_counter left(process, shop + "/counter");
            counter.push_back([left] { return buy_by_counter(left); });
            transact.push_back([process] { return buy_by_transact(process); });
        }
    co_await zk.create_or_set(shop + "/stock", std::to_string(stock));
    co_await sell_out("under a lock", lock, stock);
    const zkasio::atomic_counter left(zk, shop + "/counter");
    co_await left.initialize(stock);
    co_await sell_out("by atomic_counter", counter, stock);
    co_await zk.set(shop + "/stock", std::to_string(stock));
    co_await sell_out("by transact", transact, stock);

    const zkasio::node_children written = co_await zk.children(orders);
    expect(written.names.size() == 2 * stock, "an order for each");
    for (const zkasio::client& process : processes) co_await process.close();
}

void run(std::string servers) {
    asio::io_context io;
    asio::co_spawn(io, sale(std::move(servers)), rethrow);
    io.run();
}

int main(int argc, char** argv) { return run_example(argc, argv, run); }
