#include "support/texts.hpp"
#include "unit/support/rig.hpp"

#include "unit/support/error_of.hpp"

#include <zkasio/recipe/toolbox.hpp>

#include <asio/post.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

// Keeps the error, for a look at it after the cancellation.
asio::awaitable<void> try_to_set(client zk, std::string path, std::optional<error>& failed) {
    try {
        co_await zk.set(std::move(path), "x");
    } catch (const error& e) {
        failed = e;
    }
}

asio::awaitable<void> watch_data(client zk, std::string path) { co_await zk.get_and_watch(std::move(path)); }

}  // namespace

TEST_CASE("core: cancelled before it was sent, a request is never sent", "[core][cancel]") {
    rig r;
    r.server.reachable = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::optional<error> failed;
        running one(r.loop.executor(), try_to_set(zk, "/a", failed));
        const pending_children other = toolbox(zk).start_children("/b");
        co_await r.server.until([&] { return !r.server.log.empty(); });
        one.cancel();
        co_await one.end();
        REQUIRE(failed);
        CHECK(failed->code() == condition::cancelled);
        CHECK_FALSE(failed->outcome_unknown());
        r.server.reachable = true;
        co_await other.result();
        CHECK(r.server.texts() == texts{"children /b"});
    };
    r.run(body);
}

TEST_CASE("core: cancelled after it was sent, the outcome is unknown and the late answer dropped", "[core][cancel]") {
    rig r;
    r.server.answer = [](const request&) { return std::nullopt; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::optional<error> failed;
        running one(r.loop.executor(), try_to_set(zk, "/a", failed));
        co_await r.server.until([&] { return r.server.requests.size() == 1; });
        one.cancel();
        co_await one.end();  // without any answer
        REQUIRE(failed);
        CHECK(failed->code() == condition::cancelled);
        CHECK(failed->outcome_unknown());
        CHECK(r.core->pending_operations() == 1);  // until the backend is done with it
        r.server.reply_to_all();
        co_await r.server.until([&] { return r.core->pending_operations() == 0; });
    };
    r.run(body);
}

TEST_CASE("core: cancelled, and then the connection is lost", "[core][cancel]") {
    rig r;
    r.server.answer = [](const request&) { return std::nullopt; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::optional<error> failed;
        running one(r.loop.executor(), try_to_set(zk, "/a", failed));
        co_await r.server.until([&] { return r.server.requests.size() == 1; });
        one.cancel();
        co_await one.end();
        r.server.drop();
        co_await r.server.until([&] { return r.core->pending_operations() == 0; });
        CHECK(r.server.requests.size() == 1);
    };
    r.run(body);
}

TEST_CASE("core: a cancelled wait for the connection", "[core][cancel]") {
    rig r;
    r.server.reachable = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        running one(r.loop.executor(), connect(zk));
        co_await r.server.until([&] { return !r.server.log.empty(); });
        one.cancel();
        const std::error_code code = co_await one.code();
        CHECK(code == condition::cancelled);
        CHECK(r.core->pending_operations() == 0);
    };
    r.run(body);
}

TEST_CASE("core: the watch of a caller who has left is removed again", "[core][cancel]") {
    // What happens to the removal, and how often it is sent.
    struct way {
        std::string name;
        std::function<void(fake_server&)> removal_ends;
        std::size_t sent;
    };
    const std::vector<way> ways{
        {"it works", [](fake_server& s) { s.reply_to_all(); }, 1},
        {"the connection is lost under it", [](fake_server& s) { s.drop(); }, 1},  // and the watch with it
        {"the server is busy", [](fake_server& s) { s.reply_to_all(zk_errc::throttled); }, 2},
        // The library still knows it, and would set it again:
        {"the server does not know the watch", [](fake_server& s) { s.reply_to_all(zk_errc::no_watcher); }, 1},
    };
    for (const way& w : ways) {
        INFO(w.name);
        rig r;
        r.server.answer = [](const request&) { return std::nullopt; };
        auto body = [&](client zk) -> asio::awaitable<void> {
            running one(r.loop.executor(), watch_data(zk, "/a"));
            co_await r.server.until([&] { return r.server.requests.size() == 1; });
            one.cancel();
            co_await one.end();
            r.server.reply_to_all();
            co_await r.server.until([&] { return r.server.count("remove watch /a") == 1; });
            CHECK(r.server.watched("/a"));
            r.server.answer = [](const request&) { return reply{}; };
            w.removal_ends(r.server);
            co_await r.server.until([&] { return r.core->watches() == 0; });
            CHECK(r.server.count("remove watch /a") == w.sent);
            CHECK_FALSE(r.server.watched("/a"));
        };
        r.run(body);
    }
}

TEST_CASE("core: the watch of a caller who has left stays while others use it", "[core][cancel]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto seen = co_await zk.get_and_watch("/a");
        r.server.answer = [](const request&) { return std::nullopt; };
        running one(r.loop.executor(), watch_data(zk, "/a"));
        co_await r.server.until([&] { return r.server.requests.size() == 2; });
        one.cancel();
        co_await one.end();
        r.server.reply_to_all();
        r.server.fire(node_event::data_changed, "/a");
        const watch_event event = co_await seen.changes.changed();
        CHECK(event.what == node_change::data_changed);
        CHECK(r.server.texts() == texts{"get /a", "get /a"});
    };
    r.run(body);
}

TEST_CASE("core: cancelling the wait for a watch keeps the watch", "[core][cancel]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto seen = co_await zk.get_and_watch("/a");
        auto wait = [&]() -> asio::awaitable<void> { co_await seen.changes.changed(); };
        running one(r.loop.executor(), wait());
        co_await r.server.until([&] { return r.core->pending_operations() == 1; });
        one.cancel();
        const std::error_code code = co_await one.code();
        CHECK(code == condition::cancelled);
        CHECK(r.core->pending_operations() == 0);
        CHECK(r.server.watched("/a"));
        r.server.fire(node_event::removed, "/a");
        const watch_event event = co_await seen.changes.changed();
        CHECK(event.what == node_change::removed);
    };
    r.run(body);
}

TEST_CASE("core: a cancellation that reaches the strand before the wait that it ends", "[core][cancel]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto seen = co_await zk.get_and_watch("/a");
        std::optional<running> one;
        auto wait = [&]() -> asio::awaitable<void> {
            asio::post(zk.get_executor(), [&] { one->cancel(); });  // in front of what follows
            co_await seen.changes.changed();
        };
        one.emplace(r.loop.executor(), wait());
        const std::error_code code = co_await one->code();
        CHECK(code == condition::cancelled);
    };
    r.run(body);
}
