#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("watches fire on data, creation, removal and children") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "watches");
        const std::string path = dir + "/n";

        const auto absent = co_await zk.exists_and_watch(path);
        CHECK_FALSE(absent.value);
        const auto empty = co_await zk.children_and_watch(dir);
        CHECK(empty.value.names.empty());
        co_await zk.create(path, "1");
        watch_event event = co_await absent.changes.changed();
        CHECK(event.what == node_change::created);
        event = co_await empty.changes.changed();
        CHECK(event.what == node_change::children_changed);
        CHECK(event.path == dir);

        const auto data = co_await zk.get_and_watch(path);
        CHECK(data.value.data == "1");
        co_await zk.set(path, "2");
        event = co_await data.changes.changed();
        CHECK(event.what == node_change::data_changed);
        event = co_await data.changes.changed();  // it has fired, and stays so
        CHECK(event.what == node_change::data_changed);

        const auto last = co_await zk.exists_and_watch(path);
        const auto children = co_await zk.children_and_watch(path);
        co_await zk.remove(path);
        event = co_await last.changes.changed();
        CHECK(event.what == node_change::removed);
        event = co_await children.changes.changed();
        CHECK(event.what == node_change::removed);

        const std::error_code none = co_await code_of(zk.get_and_watch(path));
        CHECK(none == zk_errc::no_node);
    };
    with_client(body);
}

// Since CVE-2024-23944; Debian's 3.8.0 has the cure.
TEST_CASE("a watch tells nothing of a node that its client may not read") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "watches-acl");
        const test_client other(co_await asio::this_coro::executor, options());
        const auto closed = co_await other.exists_and_watch(dir + "/closed");
        const auto open = co_await other.exists_and_watch(dir + "/open");
        bool told = false;
        closed.changes.then([&](std::error_code why, node_change) { told = !why; });
        create_options how;
        how.acl(acl(1, acl_entry(permission::admin, anyone())));
        co_await zk.create(dir + "/closed", "", how);
        co_await zk.create(dir + "/open");
        const watch_event event = co_await open.changes.changed();
        CHECK(event.what == node_change::created);
        CHECK_FALSE(told);
        co_await zk.set_acl(dir + "/closed", open_acl());
        co_await other.close();
    };
    with_client(body);
}

TEST_CASE("watch on configuration data that fires again and again") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "config");
        co_await zk.create(dir + "/c", "0");
        for (int i = 1; i <= 20; ++i) {
            const auto now = co_await zk.get_and_watch(dir + "/c");
            CHECK(now.value.data == std::to_string(i - 1));
            co_await zk.set(dir + "/c", std::to_string(i));
            co_await now.changes.changed();
        }
    };
    with_client(body);
}

TEST_CASE("watches of one node share one of the server, which goes with the last of them") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "shared-watch");
        const auto server_side = [&](bool wanted) {
            return [&dir, wanted]() -> asio::awaitable<bool> { co_return watched_below(dir).empty() != wanted; };
        };
        const auto watched_now = server_side(true);
        const auto unwatched_now = server_side(false);
        {
            const auto first = co_await zk.get_and_watch(dir);
            {
                const auto second = co_await zk.exists_and_watch(dir);
                CHECK(zk.inside().watches() == 1);
            }
            co_await eventually(watched_now);
            CHECK(zk.inside().watches() == 1);

            co_await zk.set(dir, "x");
            const watch_event event = co_await first.changes.changed();
            CHECK(event.what == node_change::data_changed);
        }
        CHECK(zk.inside().watches() == 0);
        {
            const auto unused = co_await zk.children_and_watch(dir);
            const auto also = co_await zk.get_and_watch(dir);
            co_await eventually(watched_now);
        }
        co_await eventually(unwatched_now);
        // The removal of the old one must not take a new one along.
        std::optional<watched<node_data>> old(co_await zk.get_and_watch(dir));
        old.reset();
        const auto fresh = co_await zk.get_and_watch(dir);
        co_await zk.set(dir, "y");
        const watch_event event = co_await fresh.changes.changed();
        CHECK(event.what == node_change::data_changed);
    };
    with_client(body);
}

TEST_CASE("a cancelled wait leaves the watch, a cancelled read leaves nothing") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "cancelled-watch");
        const auto executor = co_await asio::this_coro::executor;
        const auto seen = co_await zk.get_and_watch(dir);
        auto wait = [&]() -> asio::awaitable<void> { co_await seen.changes.changed(); };
        running waiting(executor, wait());
        waiting.cancel();
        const std::error_code cancelled = co_await waiting.code();
        CHECK(cancelled == condition::cancelled);

        // Cancelled while the request is under way: the watch that it sets is removed again.
        const std::string other = dir + "/other";
        co_await zk.create(other);
        auto read = [&]() -> asio::awaitable<void> { co_await zk.get_and_watch(other); };
        running reading(executor, read());
        asio::steady_timer turn(executor, 0s);
        co_await turn.async_wait(asio::use_awaitable);
        reading.cancel();
        co_await reading.end();
        auto none = [&]() -> asio::awaitable<bool> {
            co_return zk.inside().watches() == 1 && watched_below(other).empty();
        };
        co_await eventually(none);

        co_await zk.set(dir, "x");
        const watch_event event = co_await seen.changes.changed();
        CHECK(event.what == node_change::data_changed);
    };
    with_client(body);
}
