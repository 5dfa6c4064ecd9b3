// client::idle(): it waits for what goes on although nobody awaits it.
#include "unit/support/fake_tree.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

asio::awaitable<void> acquire_and_drop(client zk) {
    const mutex lock(std::move(zk), "/lock");
    const lock_guard guard = co_await lock.acquire();
}

asio::awaitable<void> take_permit(client zk) {
    const semaphore permits_of_one(std::move(zk), "/sem", permits::fixed(1));
    const lock_guard guard = co_await permits_of_one.acquire();
}

// Answers everything but these, which the test answers itself.
template <class Request>
fake_server::answer_function all_but(fake_tree& tree) {
    return [&tree](const request& q) {
        return std::holds_alternative<Request>(q) ? std::optional<reply>() : std::optional<reply>(tree(q));
    };
}

op_id last_request(const fake_server& s, const std::string& begins_with) {
    op_id id = 0;
    for (const fake_server::received& r : s.requests)
        if (r.text.starts_with(begins_with)) id = r.id;
    return id;
}

// It is idle with this answer, and not before.
asio::awaitable<void> ends_with_the_answer_to(fake_server& s, const running& idle, const std::string& removal) {
    co_await next_turns(s);
    CHECK_FALSE(idle.ended());
    s.reply_to(last_request(s, removal));
    const std::error_code code = co_await idle.code();
    CHECK_FALSE(code);
}

// Is cancelled as soon as this request is under way.
asio::awaitable<void> cancelled_behind(fake_server& s, client zk, asio::awaitable<void> acquire, std::string request) {
    running under_way(zk.get_executor(), std::move(acquire));
    co_await s.until([&] { return last_request(s, request) != 0; });
    under_way.cancel();
    const std::error_code cancelled = co_await under_way.code();
    CHECK(cancelled == condition::cancelled);
}

}  // namespace

TEST_CASE("idle: at once when nothing goes on", "[idle]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const pending_removal removal = toolbox(zk).ensure_removed("/a");
        co_await removal.result();
        co_await zk.idle();
    };
    r.run(body);
}

TEST_CASE("idle: waits for a removal that nobody awaits, across reconnects, and for none that began later", "[idle]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        r.server.answer = [](const request&) { return std::optional<reply>(); };
        toolbox(zk).ensure_removed("/a");
        const running all(zk.get_executor(), zk.idle());
        toolbox(zk).ensure_removed("/later");
        co_await r.server.until([&] { return r.server.count("remove /later") == 1; });
        r.server.drop();
        co_await r.server.until([&] { return r.server.count("remove /later") == 2; });
        co_await ends_with_the_answer_to(r.server, all, "remove /a");
        CHECK(r.server.count("remove /a") == 2);
        r.server.reply_to(last_request(r.server, "remove /later"));
        co_await zk.idle();
    };
    r.run(body);
}

TEST_CASE("idle: waits for the release of a guard that was destroyed", "[idle]") {
    rig r;
    fake_tree tree;
    r.server.answer = [&](const request& q) { return tree(q); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        r.server.answer = all_but<remove_request>(tree);
        co_await acquire_and_drop(zk);
        const running all(zk.get_executor(), zk.idle());
        co_await r.server.until([&] { return last_request(r.server, "remove ") != 0; });
        co_await ends_with_the_answer_to(r.server, all, "remove ");
    };
    r.run(body);
}

TEST_CASE("idle: waits until the node of an acquire that was cancelled is known, and then until it is gone", "[idle]") {
    rig r;
    fake_tree tree;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        r.server.answer = [](const request&) { return std::optional<reply>(); };
        co_await cancelled_behind(r.server, zk, acquire_and_drop(zk), "create ");
        const running all(zk.get_executor(), zk.idle());
        co_await next_turns(r.server);
        CHECK_FALSE(all.ended());
        for (const fake_server::received& sent : r.server.requests)
            if (sent.id == last_request(r.server, "create ")) r.server.reply_to(sent.id, tree(sent.what));
        co_await r.server.until([&] { return last_request(r.server, "remove ") != 0; });
        co_await ends_with_the_answer_to(r.server, all, "remove ");
        r.server.reply_to_all();
        r.server.answer = [&](const request& q) { return tree(q); };
    };
    r.run(body);
}

TEST_CASE("idle: waits until the lease of a permit that was given up is gone", "[idle]") {
    rig r;
    fake_tree tree;
    const auto is_lease = [](const request& q) {
        const auto* c = std::get_if<create_request>(&q);
        return c && c->path.starts_with("/sem/leases/");
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        r.server.answer = [&](const request& q) {
            const bool held_back = is_lease(q) || std::holds_alternative<remove_request>(q);
            return held_back ? std::optional<reply>() : std::optional<reply>(tree(q));
        };
        co_await cancelled_behind(r.server, zk, take_permit(zk), "create /sem/leases/");
        const running all(zk.get_executor(), zk.idle());
        co_await next_turns(r.server);
        for (const fake_server::received& sent : r.server.requests)
            if (is_lease(sent.what)) r.server.reply_to(sent.id, tree(sent.what));
        co_await r.server.until([&] { return last_request(r.server, "remove /sem/leases/") != 0; });
        if (const op_id turn = last_request(r.server, "remove /sem/locks/")) r.server.reply_to(turn);
        co_await ends_with_the_answer_to(r.server, all, "remove /sem/leases/");
        r.server.answer = [&](const request& q) { return tree(q); };
    };
    r.run(body);
}

TEST_CASE("idle: waits for tasks in the background", "[idle]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const one_shot_event may_end = toolbox(zk).make_one_shot_event();
        toolbox(zk).run_in_background(may_end.wait());
        const running all(zk.get_executor(), zk.idle());
        co_await next_turns(r.server);
        CHECK_FALSE(all.ended());
        may_end.fire();
        const std::error_code code = co_await all.code();
        CHECK_FALSE(code);
    };
    r.run(body);
}

TEST_CASE("idle: ends with the client, and when it is cancelled", "[idle]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        r.server.answer = [](const request&) { return std::optional<reply>(); };
        toolbox(zk).ensure_removed("/a");
        running one(zk.get_executor(), zk.idle());
        const running other(zk.get_executor(), zk.idle());
        co_await next_turns(r.server);
        one.cancel();
        const std::error_code cancelled = co_await one.code();
        CHECK(cancelled == condition::cancelled);
        CHECK_FALSE(other.ended());
        co_await zk.close();
        const std::error_code closed = co_await other.code();
        CHECK(closed == errc::client_closed);
        const std::error_code afterwards = co_await code_of(zk.idle());
        CHECK(afterwards == errc::client_closed);
    };
    r.run(body);
}

namespace {

asio::awaitable<void> acquire_until_lost(client zk) {
    const mutex lock(std::move(zk), "/lock");
    const lock_guard guard = co_await lock.acquire();
    co_await guard.lost();
}

}  // namespace

TEST_CASE("idle: waits until a lock has been handed on, also when whoever was to have it has lost its node", "[idle]") {
    rig r;
    fake_tree tree;
    r.server.answer = [&](const request& q) { return tree(q); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        const mutex lock(zk, "/lock");
        lock_guard first = co_await lock.acquire();
        const std::string path = first.path();
        const running next(zk.get_executor(), acquire_until_lost(zk));
        co_await r.server.until([&] { return tree.size() == 2; });
        co_await next_turns(r.server);
        tree(remove_request{tree.nth(1)});
        std::vector<fake_server::received> removals;
        r.server.answer = [&](const request& q) -> std::optional<reply> {
            const auto* one = std::get_if<remove_request>(&q);
            if (!std::holds_alternative<multi_request>(q) && !(one && one->path == path)) return tree(q);
            removals.push_back(r.server.requests.back());
            return std::nullopt;
        };
        first = lock_guard();
        const running all(zk.get_executor(), zk.idle());
        co_await r.server.until([&] { return removals.size() == 1; });
        REQUIRE(std::holds_alternative<multi_request>(removals[0].what));
        r.server.reply_to(removals[0].id, tree(removals[0].what));
        co_await r.server.until([&] { return removals.size() == 2; });
        co_await next_turns(r.server);
        CHECK_FALSE(all.ended());
        r.server.answer = [&](const request& q) { return tree(q); };
        r.server.reply_to(removals[1].id, tree(removals[1].what));
        const std::error_code code = co_await all.code();
        CHECK_FALSE(code);
        const std::error_code got = co_await next.code();
        CHECK_FALSE(got);
    };
    r.run(body);
}
