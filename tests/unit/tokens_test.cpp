// What arrives through each completion token and combinator of Asio, over a client that answers.
#include "unit/handles/task_scope_steps.hpp"
#include "unit/support/fake_tree.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/detached.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/experimental/deferred.hpp>
#include <asio/experimental/parallel_group.hpp>
#include <asio/multiple_exceptions.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_future.hpp>

#include <future>
#include <variant>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;
using asio::experimental::as_tuple;
using asio::experimental::deferred;

namespace {

// There is one node, "/a".
reply only_node_a(const request& what) {
    if (path_of(what) == "/none") return refusal(zk_errc::no_node);
    reply r;
    r.path = path_of(what);
    r.data = "data of a";
    return r;
}

std::error_code code_from(std::exception_ptr e) {
    try {
        if (e) std::rethrow_exception(e);
    } catch (const error& failed) {
        return failed.code();
    }
    return {};
}

template <class T>
std::error_code code_from(std::future<T>& future) {
    try {
        future.get();
    } catch (const error& failed) {
        return failed.code();
    }
    return {};
}

// The exception that is kept when both of two operations have failed.
template <class T>
asio::awaitable<std::error_code> first_code_of_both(asio::awaitable<T> both) {
    std::error_code code;
    try {
        (void)co_await std::move(both);
        FAIL("one of them has succeeded");
    } catch (const asio::multiple_exceptions& failed) {
        code = code_from(failed.first_exception());
    }
    co_return code;
}

// Both who wait for the gate complete in one turn, with locks that are held.
asio::awaitable<lock_guard> granted_behind(mutex lock, gate& until) {
    lock_guard guard = co_await lock.acquire();
    co_await until.wait();
    co_return guard;
}

asio::awaitable<void> open_when_both_hold(gate& what, fake_server& server, const fake_tree& tree) {
    co_await server.until([&] { return tree.size() == 2; });
    co_await settle();
    what.open();
}

}  // namespace

TEST_CASE("tokens: use_future from a thread outside of the loop", "[tokens]") {
    rig r;
    r.server.answer = only_node_a;
    struct {
        node_data read;
        std::int64_t session_id = 0, credentials_id = 0;
        std::string watched_path;
        std::error_code refused, refused_watch;
    } got;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const one_shot_event done = toolbox(zk).make_one_shot_event();
        const auto loop = r.loop.executor();
        const auto outside = std::async(std::launch::async, [&] {
            got.read = asio::co_spawn(loop, zk.get("/a"), asio::use_future).get();
            got.session_id = asio::co_spawn(loop, zk.current_session(), asio::use_future).get().id();
            got.credentials_id = asio::co_spawn(loop, zk.credentials(), asio::use_future).get().id();
            const watched<node_data> seen = asio::co_spawn(loop, zk.get_and_watch("/a"), asio::use_future).get();
            got.watched_path = seen.changes.path();
            auto missing = asio::co_spawn(loop, zk.get("/none"), asio::use_future);
            auto unwatched = asio::co_spawn(loop, zk.get_and_watch("/none"), asio::use_future);
            got.refused = code_from(missing);
            got.refused_watch = code_from(unwatched);
            done.fire();
        });
        co_await done.wait();
    };
    r.run(body);
    CHECK(got.read.data == "data of a");
    CHECK(got.session_id == 0x1001);
    CHECK(got.credentials_id == 0x1001);
    CHECK(got.watched_path == "/a");
    CHECK(got.refused == zk_errc::no_node);
    CHECK(got.refused_watch == zk_errc::no_node);
}

TEST_CASE("tokens: callbacks get the result or the exception and an empty object", "[tokens]") {
    rig r;
    r.server.answer = only_node_a;
    int called = 0;
    auto body = [&](client zk) -> asio::awaitable<void> {
        gate all(r.loop.executor());
        const auto count = [&] {
            if (++called == 5) all.open();
        };
        co_await zk.connected();
        asio::co_spawn(r.loop.executor(), zk.get("/a"), [=](std::exception_ptr e, node_data got) {
            CHECK_FALSE(e);
            CHECK(got.data == "data of a");
            count();
        });
        asio::co_spawn(r.loop.executor(), zk.get_and_watch("/none"), [=](std::exception_ptr e, watched<node_data> got) {
            CHECK(code_from(e) == zk_errc::no_node);
            CHECK(got.changes.path().empty());
            count();
        });
        asio::co_spawn(r.loop.executor(), zk.sync("/none"), [=](std::exception_ptr e) {
            CHECK(code_from(e) == zk_errc::no_node);
            count();
        });
        asio::co_spawn(r.loop.executor(), zk.current_session(), [=](std::exception_ptr e, session got) {
            CHECK_FALSE(e);
            CHECK_FALSE(got.over());
            count();
        });
        client from = zk;
        const client to = std::move(from);
        asio::co_spawn(r.loop.executor(), from.current_session(), [=](std::exception_ptr e, session got) {
            CHECK(code_from(e) == errc::invalid_argument);
            CHECK(got.over());
            count();
        });
        co_await all.wait();
    };
    r.run(body);
    CHECK(called == 5);
}

TEST_CASE("tokens: detached operations go on and their errors are dropped", "[tokens]") {
    rig r;
    r.server.answer = only_node_a;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        asio::co_spawn(r.loop.executor(), zk.set("/a", "x"), asio::detached);
        asio::co_spawn(r.loop.executor(), zk.get_and_watch("/none"), asio::detached);
        asio::co_spawn(r.loop.executor(), zk.get_and_watch("/a"), asio::detached);  // nobody keeps the watch
        co_await r.server.until([&] { return r.server.requests.size() >= 3; });
        co_await settle();
        CHECK(r.server.count("set /a") == 1);
        co_await r.server.until([&] { return r.core->watches() == 0; });
    };
    r.run(body);
}

TEST_CASE("tokens: as_tuple returns the exception and redirect_error does not", "[tokens]") {
    rig r;
    r.server.answer = only_node_a;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto loop = r.loop.executor();
        const auto [good, s] = co_await asio::co_spawn(loop, zk.current_session(), as_tuple(asio::use_awaitable));
        CHECK_FALSE(good);
        CHECK(s.id() == 0x1001);
        const auto [bad, seen] =
            co_await asio::co_spawn(loop, zk.get_and_watch("/none"), as_tuple(asio::use_awaitable));
        CHECK(code_from(bad) == zk_errc::no_node);
        CHECK(seen.changes.path().empty());

        std::error_code redirected;
        co_await expect_code(
            asio::co_spawn(loop, zk.get("/none"), asio::redirect_error(asio::use_awaitable, redirected)),
            zk_errc::no_node);
        CHECK_FALSE(redirected);
        const node_data read =
            co_await asio::co_spawn(loop, zk.get("/a"), asio::redirect_error(asio::use_awaitable, redirected));
        CHECK(read.data == "data of a");
    };
    r.run(body);
}

TEST_CASE("tokens: use_awaitable on another executor", "[tokens]") {
    rig r;
    r.server.answer = only_node_a;
    asio::thread_pool other(1);
    auto body = [&](client zk) -> asio::awaitable<void> {
        const node_data read = co_await asio::co_spawn(other, zk.get("/a"), asio::use_awaitable);
        CHECK(read.data == "data of a");
        const session s = co_await asio::co_spawn(other, zk.current_session(), asio::use_awaitable);
        CHECK(s.id() == 0x1001);
        co_await expect_code(asio::co_spawn(other, zk.get("/none"), asio::use_awaitable), zk_errc::no_node);
    };
    r.run(body);
    other.join();
}

TEST_CASE("tokens: of two operations that complete at once either is kept or destroyed", "[tokens]") {
    using namespace asio::experimental::awaitable_operators;
    rig r;
    fake_tree tree;
    r.server.answer = [&](const request& what) { return tree(what); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const mutex one(zk, "/one"), two(zk, "/two");
        const auto nodes = [&] { return tree.size(); };
        {
            gate both(r.loop.executor());
            running opening(r.loop.executor(), open_when_both_hold(both, r.server, tree));
            const auto winner = co_await (granted_behind(one, both) || granted_behind(two, both));
            const lock_guard& kept = winner.index() == 0 ? std::get<0>(winner) : std::get<1>(winner);
            CHECK(kept.held());
            co_await r.server.until([&] { return nodes() == 1; });  // the other guard was destroyed: it has released
            CHECK(tree.has(kept.path()));
            co_await opening.end();
        }
        co_await r.server.until([&] { return nodes() == 0; });
        {
            gate both(r.loop.executor());
            running opening(r.loop.executor(), open_when_both_hold(both, r.server, tree));
            const auto got = co_await (granted_behind(one, both) && granted_behind(two, both));
            CHECK(std::get<0>(got).held());
            CHECK(std::get<1>(got).held());
            CHECK(nodes() == 2);
            co_await opening.end();
        }
        co_await r.server.until([&] { return nodes() == 0; });
    };
    r.run(body);
}

TEST_CASE("tokens: and fails as soon as one operation does and or when both have failed", "[tokens]") {
    using namespace asio::experimental::awaitable_operators;
    rig r;
    r.server.answer = only_node_a;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const one_shot_event never = toolbox(zk).make_one_shot_event();
        co_await expect_code(zk.current_session() && zk.get("/none"), zk_errc::no_node);
        // The left one is cancelled because of the right one, and it is the left one's exception that Asio keeps.
        const std::error_code left = co_await first_code_of_both(never.wait() && zk.get("/none"));
        CHECK(left == condition::cancelled);
        const auto [read, s] = co_await (zk.get("/a") && zk.current_session());
        CHECK(read.data == "data of a");
        CHECK(s.id() == 0x1001);
        const auto first = co_await (zk.get_and_watch("/none") || zk.get("/a"));
        REQUIRE(first.index() == 1);
        CHECK(std::get<1>(first).data == "data of a");
        const std::error_code none = co_await first_code_of_both(zk.get_and_watch("/none") || zk.get("/none"));
        CHECK(none == zk_errc::no_node);
    };
    r.run(body);
}

TEST_CASE("tokens: make_parallel_group of deferred operations", "[tokens]") {
    rig r;
    r.server.answer = only_node_a;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto loop = r.loop.executor();
        auto group = asio::experimental::make_parallel_group(asio::co_spawn(loop, zk.get("/a"), deferred),
                                                             asio::co_spawn(loop, zk.current_session(), deferred),
                                                             asio::co_spawn(loop, zk.get_and_watch("/none"), deferred));
        const auto [order, e1, read, e2, s, e3, seen] =
            co_await group.async_wait(asio::experimental::wait_for_all(), asio::use_awaitable);
        CHECK_FALSE(e1);
        CHECK(read.data == "data of a");
        CHECK_FALSE(e2);
        CHECK(s.id() == 0x1001);
        CHECK(code_from(e3) == zk_errc::no_node);
        CHECK(seen.changes.path().empty());

        const one_shot_event never = toolbox(zk).make_one_shot_event();
        auto race = asio::experimental::make_parallel_group(asio::co_spawn(loop, never.wait(), deferred),
                                                            asio::co_spawn(loop, zk.get("/a"), deferred));
        const auto [ended, cancelled, no_error, first] =
            co_await race.async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
        CHECK(ended[0] == 1);
        CHECK(cancelled);
        CHECK_FALSE(no_error);
        CHECK(first.data == "data of a");
    };
    r.run(body);
}
