// Locks over a scripted server: creates whose answers are lost.

#include "unit/locks/lock_steps.hpp"
#include "unit/support/fake_tree.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/locks/mutex.hpp>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

// Fails without G37.
TEST_CASE("lock: after a cut one listing finds the nodes of all creates whose answers were lost", "[lock]") {
    rig r;
    fake_tree tree;
    bool losing = true;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        reply a = tree(q);
        const bool is_lost = losing && std::holds_alternative<create_request>(q) && tree.size() > 1;
        if (is_lost) return std::nullopt;  // done, and not told; but the first one: others may wait for its answer
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const mutex lock(zk, "/lock");
        std::vector<running> tasks;
        for (int i = 0; i < 200; ++i) tasks.emplace_back(r.loop.executor(), take(lock));
        co_await r.server.until([&] { return requests_named(r.server, "create") == 200 && tree.size() == 199; });
        for (int i = 1; i < 150; ++i) tasks[static_cast<std::size_t>(i)].cancel();
        for (int i = 1; i < 150; ++i) {
            const std::error_code code = co_await tasks[static_cast<std::size_t>(i)].code();
            CHECK(code == condition::cancelled);
        }
        losing = false;
        r.server.drop();
        for (std::size_t i = 150; i < 200; ++i) {
            const std::exception_ptr failed = co_await tasks[i].end();
            CHECK_FALSE(failed);
        }
        co_await r.server.until([&] { return tree.size() == 0; });
        CHECK(requests_named(r.server, "create") == 200);
        CHECK(requests_named(r.server, "sync") == 1);
        CHECK(requests_named(r.server, "exists") == 50);  // of those who still wait
    };
    r.run(body);
}

// To those behind it such a node is one of the others until it is found. What a watch on it told by then would be lost.
// Fails without G17.
TEST_CASE("lock: nobody follows a node whose create was lost before it is found", "[lock]") {
    rig r;
    fake_tree tree;
    bool searching = false;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        searching = searching || std::holds_alternative<sync_request>(q);
        if (searching && std::holds_alternative<children_request>(q)) {  // the first one is the search's
            searching = false;
            return std::nullopt;
        }
        reply a = tree(q);
        if (r.server.connections == 1 && std::holds_alternative<create_request>(q)) return std::nullopt;
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const mutex lock(zk, "/lock");
        std::optional<lock_guard> first, second;
        auto acquire = [&](std::optional<lock_guard>& to) -> asio::awaitable<void> {
            to.emplace(co_await lock.acquire());
        };
        running lost(r.loop.executor(), acquire(first));
        co_await r.server.until([&] { return tree.size() == 1; });
        r.server.drop();
        co_await r.server.until([&] { return r.server.count("sync /lock") > 0; });
        co_await r.server.until([&] { return r.server.texts().back() == "children /lock"; });
        const op_id search = r.server.requests.back().id;
        const running next(r.loop.executor(), acquire(second));
        co_await r.server.until([&] { return tree.size() == 2; });
        for (int turns = 0; turns < 10; ++turns) co_await next_turns(r.server);
        const std::string path = tree.nth(0);
        CHECK_FALSE(r.server.watched(path));
        CHECK_FALSE(next.ended());
        SECTION("it is there") {
            r.server.reply_to(search, tree(children_request{"/lock", {}}));
            co_await lost.end();
            REQUIRE(first->held());
            CHECK_FALSE(next.ended());
            co_await first->release();
        }
        SECTION("somebody has deleted it, and nobody wants it") {
            tree(remove_request{path});
            lost.cancel();
            co_await lost.end();
            r.server.reply_to(search, tree(children_request{"/lock", {}}));
        }
        co_await next.end();
        CHECK(second->held());
        co_await second->release();
    };
    r.run(body);
}

// Fails without G39.
TEST_CASE("lock: creates that were lost without a trace are sent again, unless nobody wants them any more", "[lock]") {
    rig r;
    fake_tree tree;
    bool losing = true;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (losing && std::holds_alternative<create_request>(q)) return std::nullopt;
        return tree(q);
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const mutex lock(zk, "/lock");
        running stays(r.loop.executor(), take(lock)), leaves(r.loop.executor(), take(lock));
        co_await r.server.until([&] { return requests_named(r.server, "create") == 2; });
        leaves.cancel();
        co_await leaves.end();
        losing = false;
        r.server.drop();
        const std::exception_ptr failed = co_await stays.end();
        CHECK_FALSE(failed);
        CHECK(requests_named(r.server, "create") == 3);
        CHECK(requests_named(r.server, "sync") == 1);
    };
    r.run(body);
}

// Fails without G37.
TEST_CASE("lock: a node that is found, and may not be looked at, fails the acquire and is removed", "[lock]") {
    rig r;
    fake_tree tree;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (std::holds_alternative<exists_request>(q)) return refusal(zk_errc::no_auth);
        reply a = tree(q);
        if (r.server.connections == 1 && std::holds_alternative<create_request>(q)) return std::nullopt;
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const mutex lock(zk, "/lock");
        const running acquiring(r.loop.executor(), take(lock));
        co_await r.server.until([&] { return tree.size() == 1; });
        r.server.drop();
        const std::error_code code = co_await acquiring.code();
        CHECK(code == zk_errc::no_auth);
        co_await zk.idle();
        CHECK(tree.size() == 0);
    };
    r.run(body);
}

TEST_CASE("lock: a search that is cut, too, is repeated, and serves those who were lost meanwhile", "[lock]") {
    rig r;
    fake_tree tree;
    int losing = 2;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        if (losing > 0 && std::holds_alternative<sync_request>(q)) {
            --losing;
            r.server.drop();
            return std::nullopt;
        }
        reply a = tree(q);
        if (losing == 2 && std::holds_alternative<create_request>(q) && tree.size() > 1) return std::nullopt;
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const mutex lock(zk, "/lock");
        std::vector<running> tasks;
        for (int i = 0; i < 20; ++i) tasks.emplace_back(r.loop.executor(), take(lock));
        co_await r.server.until([&] { return requests_named(r.server, "create") == 20 && tree.size() == 19; });
        r.server.drop();
        for (const running& t : tasks) {
            const std::exception_ptr failed = co_await t.end();
            CHECK_FALSE(failed);
        }
        co_await r.server.until([&] { return tree.size() == 0; });
        CHECK(requests_named(r.server, "sync") == 3);
    };
    r.run(body);
}
