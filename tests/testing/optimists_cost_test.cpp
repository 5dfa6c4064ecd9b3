// What n writers of one node, or of one counter, and n readers of a value, cost the servers: laws, compared at
// different numbers of them.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/cost.hpp"

#include <zkasio/config/config_value.hpp>
#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/counters/id_allocator.hpp>
#include <zkasio/locks/unfair_mutex.hpp>
#include <zkasio/modify.hpp>
#include <zkasio/recipe/receipts.hpp>
#include <zkasio/testing/fake_ensemble.hpp>
#include <zkasio/transact/transact.hpp>
#include <zkasio/transaction.hpp>

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace optimists_cost_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

std::optional<std::string> one_more(std::optional<node_data> now) {
    return std::to_string(now && !now->data.empty() ? std::stoi(now->data) + 1 : 1);
}
asio::awaitable<void> modify_one(client zk, std::string path) { co_await modify(zk, path, &one_more); }
asio::awaitable<void> add_one(atomic_counter to) { co_await to.add(1); }

asio::awaitable<void> move_between(unit& u, std::string from, std::string to) {
    const std::optional<node_data> a = co_await u.get(from);
    const std::optional<node_data> b = co_await u.get(to);
    u.set(from, std::to_string(std::stoi(a->data) - 1));
    u.set(to, *one_more(b));
}

// Of clients that contend for one node: 1000 take 5 to 50 s of a processor.
constexpr std::size_t writer_counts[] = {10, 30, 100, 300};

int number_of(std::string_view text) { return std::stoi(std::string(text)); }
std::string text_of_number(const int& n) { return std::to_string(n); }

}  // namespace

TEST_CASE("cost of modify(): a read and a write each, of a node of one's own", "[numbers]") {
    for (const std::size_t n : client_counts()) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, n);
        for (std::size_t i = 0; i < n; ++i) e.create("/n" + std::to_string(i), "0");
        const cost c = cost_of_users(e, n, [&](std::size_t i) { return modify_one(all[i], "/n" + std::to_string(i)); });
        INFO(n << " clients: " << c);
        CHECK(c.requests == 2 * n);
        CHECK(c.writes == n);
        CHECK(c.bytes <= 270 * n);
        CHECK(c.listings == 0);
        CHECK(c.watches == 0);
        CHECK(c.ephemerals == 0);
        close_all(e, all);
    }
}

// Receipts that were created serve further transactions.
TEST_CASE("cost of transactions with receipts: a request each, and one for each of at most 64 receipts", "[numbers]") {
    const auto put = [](receipts with, std::string path) -> asio::awaitable<void> {
        transaction steps;
        steps.create(std::move(path));
        co_await with.apply(std::move(steps));
    };
    for (const std::size_t n : user_counts) {
        fake_ensemble e;
        e.create("/items");
        e.create("/receipts");
        std::vector<client> all = connected_clients(e, 1);
        {
            const receipts with(all[0].session_now(), "/receipts");
            const std::size_t made = std::min<std::size_t>(n, 64);
            for (const std::size_t creates : {made, std::size_t{0}}) {
                const std::string items = "/items/" + std::to_string(creates) + "-";
                const cost c = cost_of_users(e, n, [&](std::size_t i) { return put(with, items + std::to_string(i)); });
                INFO(n << " at a time: " << c);
                CHECK(c.requests == n + creates);
                CHECK(c.writes == n + creates);
                CHECK(c.bytes <= 310 * (n + creates));
                CHECK(c.listings == 0);
                CHECK(c.watches == 0);
                CHECK(c.ephemerals == static_cast<std::int64_t>(creates));
            }
        }
        close_all(e, all);
    }
}

// All begin at once. Each write that succeeds is a conflict for all whose reads came before it, and after a conflict a
// writer pauses, on average twice as long as before. So its pauses are long enough for n writers after some log2(n)
// conflicts, however fast the servers are: the law is n log n. Measured at 10, 100, 300, 1000 clients: modify() 4 n,
// 7 n, 11 n, 16 n requests, a counter 7 n, 10 n, 14 n, 19 n. promote_to() makes the law a linear one.
TEST_CASE("cost of modify() and of a counter: n clients that write one node at once", "[numbers]") {
    for (const bool counts : {false, true})
        for (const std::size_t n : writer_counts) {
            fake_ensemble e;
            std::vector<client> all = connected_clients(e, n);
            const double n_log_n = static_cast<double>(n) * std::log2(static_cast<double>(n));
            e.create("/n", counts ? std::string(8, '\0') : std::string("0"));
            const auto begin = e.now();
            const cost c = cost_of_users(e, n, [&](std::size_t i) {
                return counts ? add_one(atomic_counter(all[i], "/n")) : modify_one(all[i], "/n");
            });
            INFO(n << " clients, " << (counts ? "a counter: " : "modify(): ") << c << ", "
                   << std::chrono::duration<double>(e.now() - begin).count() << " s");
            CHECK(static_cast<double>(c.writes) <= 0.75 * n_log_n + static_cast<double>(counts ? 2 * n : 0));
            CHECK(static_cast<double>(c.requests) <= 2 * n_log_n + static_cast<double>(counts ? n : 0));
            CHECK(static_cast<double>(c.bytes) <=
                  (counts ? 250 : 150) * n_log_n + static_cast<double>(counts ? 300 * n : 0));
            CHECK(c.listings == 0);
            CHECK(c.watches == 0);
            CHECK(c.ephemerals <= static_cast<std::int64_t>(counts ? n : 0));  // a receipt each, at most
            close_all(e, all);
        }
}

// All read at once, one of them writes, and the others, which have met a conflict, go on one after another.
TEST_CASE("cost of modify() and transact(): n coroutines of one client that write one node at once", "[numbers]") {
    const auto transact_one = [](client zk, std::string receipts) -> asio::awaitable<void> {
        auto body = [](unit& u) -> asio::awaitable<void> {
            const std::optional<node_data> now = co_await u.get("/n");
            u.set("/n", *one_more(now));
        };
        transact_options how;
        if (!receipts.empty()) how.receipts(std::move(receipts));
        co_await transact(std::move(zk), body, how);
    };
    const auto modify_with_receipts = [](client zk) -> asio::awaitable<void> {
        co_await modify(zk, "/n", &one_more, modify_options().receipts("/receipts"));
    };
    const std::vector<std::pair<std::string, std::function<asio::awaitable<void>(client)>>> ways{
        {"modify()", [](client zk) { return modify_one(std::move(zk), "/n"); }},
        {"modify() with receipts", modify_with_receipts},
        {"transact()", [&](client zk) { return transact_one(std::move(zk), {}); }},
        {"transact() with receipts", [&](client zk) { return transact_one(std::move(zk), "/receipts"); }},
    };
    for (const auto& [name, write] : ways)
        for (const std::size_t n : user_counts) {
            fake_ensemble e;
            std::vector<client> all = connected_clients(e, 1);
            e.create("/n", "0");
            const auto begin = e.now();
            const cost c = cost_of_users(e, n, [&](std::size_t) { return write(all[0]); });
            INFO(name << ", " << n << " coroutines: " << c << ", "
                      << std::chrono::duration<double>(e.now() - begin).count() << " s");
            CHECK(e.data("/n") == std::to_string(n));
            CHECK(c.writes <= 2 * n + 200);    // 64 receipts, which find no directory, and their directory
            CHECK(c.requests <= 5 * n + 200);  // a read and a write; a sync, a read and a write
            CHECK(c.bytes <= 900 * n + 40000);
            CHECK(c.ephemerals <= 64);
            close_all(e, all);
        }
}

TEST_CASE("modify(): writers of one node in one line that are cancelled, or without a connection", "[testing]") {
    fake_ensemble e;
    std::vector<client> all = connected_clients(e, 1);
    e.create("/n", "0");
    const auto begin = [&](std::size_t n) {
        std::vector<std::unique_ptr<running>> writers;
        for (std::size_t i = 0; i < n; ++i)
            writers.push_back(std::make_unique<running>(e.get_executor(), modify_one(all[0], "/n")));
        return writers;
    };
    SECTION("every second one is cancelled") {
        auto writers = begin(100);
        e.run_for(std::chrono::milliseconds(3));
        for (std::size_t i = 0; i < writers.size(); i += 2) writers[i]->cancel();
        for (const auto& one : writers) (void)e.run(one->end(), std::chrono::seconds(20));
        CHECK(std::stoi(e.data("/n").value()) >= 50);
    }
    SECTION("all fail at about the time at which each would") {
        auto writers = begin(100);
        e.run_for(std::chrono::milliseconds(30));
        e.hang_up(all[0]);
        const auto limit = all[0].options().connection_timeout();
        const auto from = e.now();
        for (const auto& one : writers) (void)e.run(one->end(), std::chrono::minutes(10));
        CHECK(e.now() - from <= 3 * limit + std::chrono::minutes(1));
        e.let_in(all[0]);
    }
    close_all(e, all);
}

// The first one's body waits for the second one, which waits for its turn at the node.
TEST_CASE("transact(): a body that waits for another one of the same node is not waited for without an end",
          "[testing]") {
    fake_ensemble e;
    std::vector<client> all = connected_clients(e, 2);
    e.create("/n", "0");
    int runs = 0;
    bool inner_done = false;
    auto inner = [&](unit& u) -> asio::awaitable<void> {
        const std::optional<node_data> now = co_await u.get("/n");
        if (!inner_done && ++runs == 1) e.set("/n", "100");  // a conflict
        u.set("/n", *one_more(now));
    };
    int outer_runs = 0;
    auto outer = [&](unit& u) -> asio::awaitable<void> {
        const std::optional<node_data> now = co_await u.get("/n");
        if (++outer_runs == 1) e.set("/n", "50");  // a conflict
        if (outer_runs == 2) {
            co_await transact(all[0], inner, transact_options());
            inner_done = true;
        }
        u.set("/n", *one_more(now));
    };
    auto task = [&]() -> asio::awaitable<void> { co_await transact(all[0], outer, transact_options()); };
    e.run(task(), std::chrono::seconds(30));
    CHECK(inner_done);
    CHECK(e.data("/n") == "102");
    close_all(e, all);
}

// At most three writes in vain each, and then a turn. Measured at 10, 100, 300, 1000 clients: 9 n, 15 n, 21 n, 22 n.
TEST_CASE("cost of an atomic_counter with promote_to(): n clients that add at once take turns", "[numbers]") {
    for (const std::size_t n : writer_counts) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, n);
        e.create("/n", std::string(8, '\0'));
        const cost c = cost_of_users(e, n, [&](std::size_t i) {
            return add_one(atomic_counter(all[i], "/n", counter_options().promote_to("/turns")));
        });
        INFO(n << " clients: " << c);
        CHECK(c.writes <= 9 * n);
        CHECK(c.requests <= 24 * n);
        CHECK(c.bytes <= 60 * n * n + 1500 * n);  // the turns are those of a mutex: each listing has all names
        CHECK(c.listings <= 2 * n);
        CHECK(c.watches == 0);
        close_all(e, all);
    }
}

TEST_CASE("cost of an atomic_counter: of the coroutines of one client, two writes", "[numbers]") {
    for (const std::size_t n : user_counts) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, 1);
        const atomic_counter counter(all[0], "/n");
        e.run(add_one(counter));
        const cost c = cost_of_users(e, n, [&](std::size_t) { return add_one(counter); });
        INFO(n << " coroutines: " << c);
        CHECK(c.requests <= 2);
        CHECK(c.writes <= 2);
        CHECK(c.bytes <= 700);
        CHECK(c.ephemerals <= 1);
        close_all(e, all);
    }
}

TEST_CASE("cost of transact(): two reads and a write each, of nodes of one's own", "[numbers]") {
    for (const std::size_t n : client_counts()) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, n);
        for (std::size_t i = 0; i < n; ++i) {
            e.create("/a" + std::to_string(i), "0");
            e.create("/b" + std::to_string(i), "0");
        }
        const auto own = [&](std::size_t i) -> asio::awaitable<void> {
            const std::string a = "/a" + std::to_string(i), b = "/b" + std::to_string(i);
            const auto body = [a, b](unit& u) -> asio::awaitable<void> { co_await move_between(u, a, b); };
            co_await transact(all[i], body, transact_options());
        };
        const cost c = cost_of_users(e, n, own);
        INFO(n << " clients: " << c);
        CHECK(c.requests == 3 * n);
        CHECK(c.writes == n);
        CHECK(c.bytes <= 550 * n);
        CHECK(c.listings == 0);
        CHECK(c.ephemerals == 0);
        close_all(e, all);
    }
}

TEST_CASE("cost of a config_value: a watch each, and a read for each change", "[numbers]") {
    for (const std::size_t n : client_counts()) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, n);
        e.create("/limit", "1");
        std::vector<config_value<int>> values;
        for (const client& zk : all) values.emplace_back(zk, "/limit", config_format<int>(&number_of, &text_of_number));
        const cost first = cost_of_users(e, n, [&](std::size_t i) { return values[i].ready(); });
        INFO(n << " values begin: " << first);
        CHECK(first.writes == 0);
        CHECK(first.listings == 0);
        CHECK(first.requests <= 2 * n);  // with the sync() of a new session
        CHECK(first.bytes <= 200 * n);
        CHECK(first.watches == static_cast<std::int64_t>(n));
        const cost_meter meter(e);
        e.set("/limit", "2");
        e.run_for(std::chrono::seconds(5));
        for (const config_value<int>& v : values) CHECK(*v.value() == 2);
        const cost c = meter.read();
        INFO(n << " values, one change: " << c);
        CHECK(c.writes == 0);
        CHECK(c.requests == n);
        CHECK(c.bytes <= 200 * n);
        CHECK(c.watches == 0);
        values.clear();
        close_all(e, all);
    }
}

// What its name says: each release wakes all.
TEST_CASE("cost of an unfair_mutex: each release costs a create and a read of each waiter", "[numbers]") {
    for (const std::size_t n : client_counts()) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, n + 1);
        std::optional<lock_guard> held(e.run(unfair_mutex(all.back(), "/u").acquire()));
        std::vector<std::unique_ptr<running>> waiting;
        const auto wait = [&](std::size_t i) -> asio::awaitable<void> {
            const lock_guard guard = co_await unfair_mutex(all[i], "/u").acquire();
            co_await asio::steady_timer(e.context(), std::chrono::hours(24)).async_wait(asio::use_awaitable);
        };
        for (std::size_t i = 0; i < n; ++i) waiting.push_back(std::make_unique<running>(e.get_executor(), wait(i)));
        e.run_for(std::chrono::seconds(30));
        const cost_meter meter(e);
        e.run(held->release());
        e.run_for(std::chrono::seconds(30));
        const cost c = meter.read();
        INFO(n << " waiters, one release: " << c);
        CHECK(c.requests <= 2 * n + 5);
        CHECK(c.writes <= n + 5);
        CHECK(c.bytes <= 260 * n + 500);
        CHECK(c.listings == 0);
        CHECK(c.ephemerals == 0);
        CHECK(c.watches <= 1);
        for (const auto& one : waiting) one->cancel();
        for (const auto& one : waiting) e.run(one->end());
        held.reset();
        close_all(e, all);
    }
}

TEST_CASE("cost of an id_allocator: a write for each block, and three requests more for each process", "[numbers]") {
    const auto take = [](id_allocator from, std::size_t ids) -> asio::awaitable<void> {
        for (; ids > 0; --ids) co_await from.next();
    };
    constexpr std::size_t block = 10;
    for (const std::size_t n : user_counts) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, 1);
        const id_allocator one(all[0], "/ids", id_options().block(block));
        const cost c = cost_of_users(e, 1, [&](std::size_t) { return take(one, n); });
        INFO(n << " ids of one process: " << c);
        CHECK(c.writes <= n / block + 3);
        CHECK(c.requests <= n / block + 6);
        CHECK(c.bytes <= 150 * n / block + 600);
        CHECK(c.listings == 0);
        CHECK(c.watches == 0);
        CHECK(c.ephemerals == 0);
        close_all(e, all);
    }
    for (const std::size_t n : user_counts) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, 1);
        const id_allocator one(all[0], "/ids", id_options().block(block));
        const cost c = cost_of_users(e, n, [&](std::size_t) { return take(one, 1); });
        INFO(n << " coroutines of one process, an id each: " << c);
        CHECK(c.writes <= n / block + 3);
        CHECK(c.requests <= n / block + 6);
        close_all(e, all);
    }
    for (const std::size_t n : client_counts()) {
        fake_ensemble e;
        std::vector<client> all = connected_clients(e, n);
        std::vector<id_allocator> each;
        for (const client& zk : all) each.emplace_back(zk, "/ids", id_options().block(block));
        const cost c = cost_of_users(e, n, [&](std::size_t i) { return take(each[i], 1); });
        INFO(n << " processes, an id each: " << c);
        CHECK(c.writes <= 2 * n + 2);
        CHECK(c.requests <= 4 * n + 2);
        CHECK(c.bytes <= 500 * n);
        CHECK(c.listings == 0);
        CHECK(c.watches == 0);
        each.clear();
        close_all(e, all);
    }
}

}  // namespace optimists_cost_tests
