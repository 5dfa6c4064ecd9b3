// What caches, streams and configuration cost the servers: laws, compared at different numbers of clients and nodes.

#include "support/catch.hpp"
#include "support/test_client.hpp"
#include "testing/cost.hpp"

#include <zkasio/cache/children_cache.hpp>
#include <zkasio/cache/node_cache.hpp>
#include <zkasio/cache/streams.hpp>
#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/config/config_format.hpp>
#include <zkasio/config/config_value.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cache_cost_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

void create_children(fake_ensemble& e, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) e.create("/r/" + std::to_string(i), "1234567890");
}

config_format<int> as_number() {
    return {[](std::string_view text) { return std::stoi(std::string(text)); },
            [](int n) { return std::to_string(n); }};
}

std::int64_t as_watches(std::size_t n) { return static_cast<std::int64_t>(n); }

}  // namespace

// Many nodes are read in one request, up to 256.
TEST_CASE("cost of a cache of n nodes: one watch, and a request for many", "[numbers]") {
    for (const std::size_t n : user_counts) {
        fake_ensemble e;
        create_children(e, n);
        const std::vector<client> all = connected_clients(e, 1);
        std::unique_ptr<tree_cache> tree;
        const cost made = cost_in_a_minute(e, [&] { tree = std::make_unique<tree_cache>(all[0], "/r"); });
        {
            INFO(n << " nodes, made: " << made);
            CHECK(made.requests <= n / 100 + 10);
            CHECK(made.listings <= 1);
            CHECK(made.writes == 0);
            CHECK(made.watches == 1);
            CHECK(made.bytes <= 250 * n + 2000);
        }
        const cost one = cost_in_a_minute(e, [&] { e.set("/r/1", "x"); });
        const cost more = cost_in_a_minute(e, [&] { e.create("/r/another", "x"); });
        const cost less = cost_in_a_minute(e, [&] { e.remove("/r/another"); });
        const cost again = cost_in_a_minute(e, [&] { e.cut(all[0]); });
        INFO(n << " nodes, one is set: " << one << "; one more: " << more << "; one less: " << less
               << "; another connection: " << again);
        CHECK(one.requests == 1);
        CHECK(more.requests == 1);
        CHECK(more.bytes <= 500);
        CHECK(less.requests == 0);
        CHECK(again.requests <= n / 100 + 15);
        CHECK(again.bytes <= 250 * n + 2000);
        CHECK(again.watches == 0);
        const cost closed = cost_in_a_minute(e, [&] { tree.reset(); });
        INFO("closed: " << closed);
        CHECK(closed.requests <= 3);
        CHECK(e.watches() == 0);
    }
}

TEST_CASE("cost of a cache of n nodes in directories: requests are full", "[numbers]") {
    for (const std::size_t n : {1000U, 12'800U}) {
        fake_ensemble e;
        for (std::size_t i = 0; i < n; ++i)
            e.create("/r/" + std::to_string(i / 100) + "/" + std::to_string(i), std::string(100, 'x'));
        const std::vector<client> all = connected_clients(e, 1);
        std::unique_ptr<tree_cache> tree;
        const cost made = cost_in_a_minute(e, [&] { tree = std::make_unique<tree_cache>(all[0], "/r"); });
        const cost again = cost_in_a_minute(e, [&] { e.cut(all[0]); });
        INFO(n << " nodes, made: " << made << "; another connection: " << again);
        CHECK(tree->snapshot().size() == n + n / 100 + 1);
        CHECK(made.watches == 1);
        CHECK(again.watches == 0);
        for (const cost& c : {made, again}) {
            CHECK(c.requests <= n / 200 + 15);
            CHECK(c.writes == 0);
            CHECK(c.listings == n / 100 + 1);
            CHECK(c.bytes <= 250 * n + 4000);
        }
    }
}

TEST_CASE("cost of n clients that follow the children of one node", "[numbers]") {
    constexpr std::size_t children = 10;
    for (const std::size_t n : client_counts()) {
        fake_ensemble e;
        create_children(e, children);
        const std::vector<client> all = connected_clients(e, n);
        std::vector<std::unique_ptr<children_cache>> caches;
        const cost made = cost_in_a_minute(e, [&] {
            for (const client& zk : all) caches.push_back(std::make_unique<children_cache>(zk, "/r"));
        });
        const cost more = cost_in_a_minute(e, [&] { e.create("/r/another", "x"); });
        const cost less = cost_in_a_minute(e, [&] { e.remove("/r/another"); });
        INFO(n << " clients, made: " << made << "; one more child: " << more << "; one less: " << less);
        CHECK(made.requests <= 4 * n);
        CHECK(made.bytes <= 1700 * n);  // ten children
        CHECK(made.listings <= n);
        CHECK(made.watches == as_watches(n));
        CHECK(more.requests == n);
        CHECK(more.listings == 0);
        CHECK(more.bytes <= 200 * n);
        CHECK(less.requests == 0);
        CHECK(less.bytes <= 50 * n);
    }
}

// The servers tell of all nodes below the root, at any depth.
TEST_CASE("cost of a children_cache above nodes that change all the time: it does without the one watch", "[numbers]") {
    for (const std::size_t n : user_counts) {
        fake_ensemble e;
        create_children(e, n);
        const std::vector<client> all = connected_clients(e, 1);
        const children_cache children(all[0], "/r");
        e.run(children.ready());
        CHECK(e.watches() == 1);
        for (std::size_t i = 0; i < n; ++i) e.set("/r/" + std::to_string(i), "x");
        e.run_for(1s);
        const std::size_t most = 1000 + 10 * n;
        const auto below = [&](std::size_t first, std::size_t events) {
            for (std::size_t i = first; i < first + events; ++i) e.create("/r/0/" + std::to_string(i), "");
        };
        const cost told = cost_in_a_minute(e, [&] { below(0, most); });
        const cost change = cost_in_a_minute(e, [&] { below(most, 1); });
        const cost then = cost_in_a_minute(e, [&] { below(most + 1, 100); });
        const cost again = cost_in_a_minute(e, [&] { e.cut(all[0]); });
        INFO(n << " children, told of those below: " << told << "; one more: " << change << "; from then on: " << then
               << "; another connection: " << again);
        CHECK(told.requests == 0);
        CHECK(told.bytes <= 50 * most);
        CHECK(told.watches == 0);
        CHECK(change.requests <= n + 5);  // each child is watched: its data, and the list
        CHECK(change.writes == 0);
        CHECK(change.listings == 1);
        CHECK(change.bytes <= 150 * n + 1000);
        CHECK(e.watches() == n + 2);
        CHECK(then.requests == 0);
        CHECK(then.bytes == 0);
        CHECK(again.requests <= n + 5);
        CHECK(again.watches == 0);
        e.set("/r/1", "new");
        e.create("/r/x", "1");
        e.remove("/r/2");
        e.run_for(1s);
        CHECK(children.snapshot().current());
        CHECK(children.snapshot().find("1").data() == "new");
        CHECK(children.snapshot().find("x").data() == "1");
        CHECK_FALSE(children.snapshot().find("2"));
    }
}

TEST_CASE("cost of a cache of n nodes at servers before 3.6: each is read once, and has two watches", "[numbers]") {
    for (const std::size_t n : user_counts) {
        fake_ensemble e;
        e.know_multi_read(false);
        create_children(e, n);
        const std::vector<client> all = connected_clients(e, 1);
        std::unique_ptr<tree_cache> tree;
        const cost made = cost_in_a_minute(e, [&] { tree = std::make_unique<tree_cache>(all[0], "/r"); });
        {
            INFO(n << " nodes, made: " << made);
            CHECK(made.requests <= 2 * n + 8);  // the data, and the names of the children
            CHECK(made.listings == n + 1);
            CHECK(made.writes == 0);
            CHECK(made.watches == as_watches(2 * n + 2));
            CHECK(made.bytes <= 400 * n + 2500);
        }
        const cost one = cost_in_a_minute(e, [&] { e.set("/r/1", "x"); });
        const cost more = cost_in_a_minute(e, [&] { e.create("/r/another", "x"); });
        const cost again = cost_in_a_minute(e, [&] { e.cut(all[0]); });
        INFO(n << " nodes, one is set: " << one << "; one more: " << more << "; another connection: " << again);
        CHECK(one.requests == 1);
        CHECK(more.requests == 3);  // the list of its parent, its data, and its children
        CHECK(more.bytes <= 20 * n + 1000);
        CHECK(again.requests <= 2 * n + 10);
        CHECK(again.bytes <= 400 * n + 2500);
        CHECK(again.watches == 0);
        const cost closed = cost_in_a_minute(e, [&] { tree.reset(); });
        INFO("closed: " << closed);
        CHECK(closed.requests <= 2 * n + 12);  // each watch is removed, 500 between two fences
        CHECK(e.watches() == 0);
    }
}

TEST_CASE("cost of n clients that follow one node: a read and a watch each, and a read for each change", "[numbers]") {
    const auto follow = [](const std::string& how, const client& zk) -> std::shared_ptr<const void> {
        if (how == "node_cache") return std::make_shared<node_cache>(zk, "/r/0");
        if (how == "config_value") return std::make_shared<config_value<int>>(zk, "/r/0", as_number());
        const auto stream = std::make_shared<value_stream>(watch_value(zk, "/r/0"));
        const auto read = [](std::shared_ptr<value_stream> s) -> asio::awaitable<void> {
            for (;;) co_await s->next();
        };
        return std::make_shared<std::pair<std::shared_ptr<value_stream>, running>>(
            stream, running(zk.get_executor(), read(stream)));
    };
    for (const std::string how : {"node_cache", "config_value", "watch_value"})
        for (const std::size_t n : client_counts()) {
            fake_ensemble e;
            create_children(e, 1);
            std::vector<client> all = connected_clients(e, n);
            std::vector<std::shared_ptr<const void>> kept;
            const cost made = cost_in_a_minute(e, [&] {
                for (const client& zk : all) kept.push_back(follow(how, zk));
            });
            const cost changed = cost_in_a_minute(e, [&] { e.set("/r/0", "5"); });
            const cost idle = cost_in_a_minute(e, [&] { e.run_for(1h); });
            INFO(how << ", " << n << " clients, made: " << made << "; changed: " << changed << "; idle: " << idle);
            CHECK(made.requests <= 2 * n);  // with the sync() of a new session
            CHECK(made.writes == 0);
            CHECK(made.watches == as_watches(n));
            CHECK(made.bytes <= 200 * n);
            CHECK(changed.requests == n);
            CHECK(changed.bytes <= 200 * n);
            CHECK(changed.watches == 0);
            CHECK(idle.requests == 0);
            close_all(e, all);
        }
}

TEST_CASE("cost of a node that n clients may not read: some ten reads in an hour each, then twelve an hour",
          "[numbers]") {
    for (const std::size_t n : {std::size_t{10}, std::size_t{100}}) {
        fake_ensemble e;
        create_children(e, 1);
        std::vector<client> all = connected_clients(e, n);
        std::vector<std::unique_ptr<node_cache>> caches;
        std::vector<std::unique_ptr<config_value<int>>> configs;
        for (const client& zk : all) {
            caches.push_back(std::make_unique<node_cache>(zk, "/r/0"));
            configs.push_back(std::make_unique<config_value<int>>(zk, "/r/0", as_number()));
        }
        e.run_for(1min);
        e.refuse("/r/0", zk_errc::no_auth);
        for (const client& zk : all) e.cut(zk);
        e.run_for(1h);
        const cost idle = cost_in_a_minute(e, [&] { e.run_for(1h); });
        INFO(n << " clients: " << idle);
        CHECK(idle.bytes <= 5000 * n);
        CHECK(idle.requests <= 3 * n * 24);  // of the cache two, and of the configuration one, in 150 s or more
        CHECK(idle.writes == 0);
        close_all(e, all);
    }
}

}  // namespace cache_cost_tests
