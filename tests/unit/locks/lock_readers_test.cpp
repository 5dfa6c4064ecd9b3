#include "unit/support/fake_directory.hpp"
#include "unit/support/fake_tree.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/locks/shared_mutex.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

TEST_CASE("lock: readers who come to a reader that has its node need no listing", "[queue]") {
    rig r;
    directory d(r.server, "0000000000");
    auto body = [&](client zk) -> asio::awaitable<void> {
        const shared_mutex lock(zk, "/l");
        const lock_guard first = co_await lock.acquire_shared();
        const auto listings = [&] {
            return std::count_if(r.server.requests.begin(), r.server.requests.end(), [](const auto& q) {
                return std::holds_alternative<children_request>(q.what);
            });
        };
        const auto before = listings();
        d.next("0000000001");
        const lock_guard second = co_await lock.acquire_shared();
        d.next("0000000002");
        const lock_guard third = co_await lock.acquire_shared();
        CHECK((second.held() && third.held()));
        CHECK(listings() == before);
    };
    r.run(body);
}

// Fails without G33.
TEST_CASE("lock: after a downgrade only a listing lets in the readers behind it", "[queue]") {
    rig r;
    fake_tree tree;
    r.server.answer = [&](const request& q) -> std::optional<reply> { return tree(q); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const shared_mutex lock(zk, "/l");
        lock_guard writing = co_await lock.acquire();
        const auto token = writing.token();
        std::optional<lock_guard> behind;
        auto read = [&]() -> asio::awaitable<void> { behind.emplace(co_await lock.acquire_shared()); };
        const running reading(r.loop.executor(), read());
        co_await r.server.until([&] { return tree.size() == 2; });
        co_await next_turns(r.server);
        const auto listings = r.server.count("children /l");
        const lock_guard reader = co_await lock.downgrade(std::move(writing));
        CHECK(reader.token() == token);
        co_await reading.end();
        CHECK(behind->held());
        CHECK(r.server.count("children /l") == listings + 1);
    };
    r.run(body);
}

// Fails without G26.
TEST_CASE("lock: one hand-over lets in as many readers as a transaction has room for", "[queue]") {
    const std::string directory = '/' + std::string(200, 'l');
    constexpr std::size_t readers = 600;  // 150'000 bytes of paths
    rig r;
    fake_tree tree;
    std::size_t most_checks = 0;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        const auto* m = std::get_if<multi_request>(&q);
        if (m && std::holds_alternative<remove_request>(m->ops.back()))
            most_checks = std::max(most_checks, m->ops.size() - 1);
        return tree(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const shared_mutex lock(zk, directory);
        lock_guard writing = co_await lock.acquire();
        std::vector<lock_guard> guards;
        auto read = [&]() -> asio::awaitable<void> { guards.push_back(co_await lock.acquire_shared()); };
        std::vector<running> all;
        for (std::size_t i = 0; i < readers; ++i) all.emplace_back(r.loop.executor(), read());
        co_await r.server.until([&] { return tree.size() == readers + 1; });
        co_await next_turns(r.server);
        const auto listings = r.server.count("children " + directory);
        co_await writing.release();
        for (const running& one : all) co_await one.end();
        CHECK(guards.size() == readers);
        CHECK(most_checks > 300);
        CHECK(most_checks < 500);
        CHECK(r.server.count("children " + directory) > listings);  // the others
        guards.clear();
        co_await r.server.until([&] { return tree.size() == 0; });
    };
    r.run(body);
}

// By then it has long been watching its own node, which for a lock without readers would be proof enough.
// Fails without G21.
TEST_CASE("lock: when the last node ahead of a writer goes, a reader may have come in its place", "[queue]") {
    const std::string writer = "_c_x-__WRIT__0000000001", reader = "_c_y-__READ__0000000001";
    rig r;
    r.server.session_timeout = 400ms;
    directory d(r.server, "0000000002");
    d.others = {writer};
    auto body = [&](client zk) -> asio::awaitable<void> {
        const shared_mutex lock(zk, "/l");
        auto acquire = [&]() -> asio::awaitable<void> { (void)co_await lock.acquire(); };
        running acquiring(r.loop.executor(), acquire());
        co_await r.server.until(
            [&] { return !d.ours.empty() && r.server.watched(d.ours) && r.server.watched("/l/" + writer); });
        d.others = {reader};
        r.server.fire(node_event::removed, "/l/" + writer);
        co_await r.server.until([&] { return r.server.watched("/l/" + reader) || acquiring.ended(); });
        CHECK_FALSE(acquiring.ended());
        acquiring.cancel();
        co_await acquiring.end();
    };
    r.run(body);
}
