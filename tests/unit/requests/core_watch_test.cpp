#include "support/texts.hpp"
#include "unit/support/rig.hpp"

#include <asio/post.hpp>

#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

using data_watch = std::optional<watched<node_data>>;

asio::awaitable<void> count_change(watch w, int& changes) {
    co_await w.changed();
    ++changes;
}

}  // namespace

TEST_CASE("core: watches of one node share one watch of the server", "[core][watch]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        auto first = co_await zk.get_and_watch("/a");
        auto second = co_await zk.exists_and_watch("/a");
        CHECK(r.core->watches() == 1);
        int changes = 0;
        r.loop.spawn(count_change(std::move(first.changes), changes));
        r.loop.spawn(count_change(std::move(second.changes), changes));
        r.server.fire(node_event::data_changed, "/a");
        co_await r.server.until([&] { return changes == 2; });
        CHECK(r.core->watches() == 0);
        CHECK(r.server.texts() == texts{"get /a", "exists /a"});
    };
    r.run(body);
}

TEST_CASE("core: a watch that has fired stays so", "[core][watch]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto seen = co_await zk.children_and_watch("/a");
        r.server.fire(node_event::children_changed, "/a");
        for (int i = 0; i < 2; ++i) {
            const watch_event event = co_await seen.changes.changed();
            CHECK(event.what == node_change::children_changed);
            CHECK(event.path == "/a");
        }
    };
    r.run(body);
}

TEST_CASE("core: a missing node is watched by exists, and not by get", "[core][watch]") {
    rig r;
    r.server.answer = [](const request&) { return refusal(zk_errc::no_node); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::error_code code = co_await code_of(zk.get_and_watch("/a"));
        CHECK(code == zk_errc::no_node);
        CHECK(r.core->watches() == 0);
        const std::error_code other = co_await code_of(zk.children_and_watch("/a"));
        CHECK(other == zk_errc::no_node);
        CHECK(r.core->watches() == 0);
        const auto absent = co_await zk.exists_and_watch("/a");
        CHECK_FALSE(absent.value);
        CHECK(r.core->watches() == 1);
        r.server.fire(node_event::created, "/a");
        const watch_event event = co_await absent.changes.changed();
        CHECK(event.what == node_change::created);
    };
    r.run(body);
}

TEST_CASE("core: the last one to leave removes the watch, once", "[core][watch]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        data_watch first = co_await zk.get_and_watch("/a");
        data_watch second = co_await zk.get_and_watch("/a");
        first.reset();
        co_await zk.sync();
        CHECK(r.server.count("remove watch /a") == 0);
        second.reset();
        co_await r.server.until([&] { return r.core->watches() == 0; });
        CHECK(r.server.texts() == texts{"get /a", "get /a", "sync /", "remove watch /a"});
        CHECK_FALSE(r.server.watched("/a"));
    };
    r.run(body);
}

TEST_CASE("core: a watch that has fired needs no removal", "[core][watch]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        data_watch seen = co_await zk.get_and_watch("/a");
        r.server.fire(node_event::data_changed, "/a");
        co_await seen->changes.changed();
        seen.reset();
        co_await zk.sync();
        CHECK(r.server.texts() == texts{"get /a", "sync /"});
    };
    r.run(body);
}

TEST_CASE("core: a watch left while the connection is lost is forgotten on this side", "[core][watch]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        data_watch seen = co_await zk.get_and_watch("/a");
        data_watch other = co_await zk.get_and_watch("/b");
        r.server.reachable = false;
        r.server.drop();
        co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        seen.reset();
        co_await r.server.until([&] { return r.core->watches() == 1; });
        CHECK(r.server.count("remove watch /a") == 0);
        CHECK_FALSE(r.server.watched("/a"));
        CHECK_FALSE(r.server.watched("/b"));

        // The other one is set again on the next connection.
        r.server.reachable = true;
        co_await r.server.until([&] { return r.server.watched("/b"); });
        CHECK(r.server.texts() == texts{"get /a", "get /b", "exists /b"});
        r.server.fire(node_event::data_changed, "/b");
        co_await other->changes.changed();
    };
    r.run(body);
}

TEST_CASE("core: a watch set again behind its removal", "[core][watch]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        data_watch seen = co_await zk.get_and_watch("/a");
        seen.reset();
        seen = co_await zk.get_and_watch("/a");
        co_await zk.sync();
        CHECK(r.server.texts() == texts{"get /a", "remove watch /a", "get /a", "sync /"});
        CHECK(r.server.watched("/a"));
        r.server.fire(node_event::data_changed, "/a");
        co_await seen->changes.changed();
    };
    r.run(body);
}

TEST_CASE("core: a watch asked for in the turn in which the last other one is left is not removed", "[core][watch]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        data_watch old = co_await zk.get_and_watch("/a");
        const auto wanted = std::make_shared<watch_state>();
        wanted->path = "/a";
        const auto answered = std::make_shared<kept_reply>();
        asio::post(r.core->strand(), [&] {
            command again;
            again.what = get_request{"/a", true};
            again.watch = wanted;
            r.core->requests().submit(std::move(again), answered, request_table::repeat::never);
            old.reset();
        });
        co_await r.server.until([&] { return answered->answered.done.load(); });
        co_await zk.sync();
        co_await zk.sync();
        CHECK(r.server.watched("/a"));
        r.server.fire(node_event::data_changed, "/a");
        co_await zk.sync();
        CHECK(wanted->fired->done);
    };
    r.run(body);
}

TEST_CASE("core: a refused request leaves no watch", "[core][watch]") {
    rig r;
    r.server.refuse = [](const request&) { return make_error_code(zk_errc::bad_arguments); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::error_code code = co_await code_of(zk.get_and_watch("/a"));
        CHECK(code == zk_errc::bad_arguments);
        CHECK(r.core->watches() == 0);
    };
    r.run(body);
}

TEST_CASE("core: the configuration can be watched", "[core][watch]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        auto seen = std::optional(co_await zk.config_and_watch());
        CHECK(seen->changes.path() == "/zookeeper/config");
        CHECK(r.core->watches() == 1);
        seen.reset();
        co_await r.server.until([&] { return r.core->watches() == 0; });
        CHECK(r.server.texts() == texts{"get_config", "remove watch /zookeeper/config"});
    };
    r.run(body);
}

TEST_CASE("core: the watch on the configuration stays below a chroot", "[core][watch]") {
    rig r(client_options("10.0.0.1/app"));
    auto body = [&](client zk) -> asio::awaitable<void> {
        auto seen = std::optional(co_await zk.config_and_watch());
        seen.reset();
        co_await zk.sync();
        seen = co_await zk.config_and_watch();
        CHECK(r.core->watches() == 1);
        CHECK(r.server.texts() == texts{"get_config", "sync /", "get_config"});
    };
    r.run(body);
}

TEST_CASE("core: a watch that is set again after a lost answer counts once", "[core][watch]") {
    const int losses = GENERATE(1, 2);
    rig r;
    int lose = losses;
    r.server.answer = [&](const request&) -> std::optional<reply> {
        if (lose-- <= 0) return reply{};
        r.server.drop();
        return std::nullopt;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto seen = co_await zk.get_and_watch("/a");
        CHECK(r.server.count("get /a") == static_cast<std::size_t>(losses) + 1);
        CHECK(r.core->watches() == 1);
        r.server.fire(node_event::removed, "/a");
        const watch_event event = co_await seen.changes.changed();
        CHECK(event.what == node_change::removed);
        CHECK(r.core->watches() == 0);
    };
    r.run(body);
}

TEST_CASE("core: a change during a cut is told on the next connection", "[core][watch]") {
    rig r;
    bool changed = false;
    r.server.answer = [&](const request& q) -> std::optional<reply> {
        reply is;
        if (std::holds_alternative<remove_watch_request>(q)) return is;
        if (path_of(q) == "/gone" && changed) return refusal(zk_errc::no_node);
        if (path_of(q) == "/new" && !changed) return refusal(zk_errc::no_node);
        is.stat.czxid = is.stat.mzxid = is.stat.pzxid = 1;
        if (path_of(q) == "/written" && changed) is.stat.mzxid = 2;
        if (path_of(q) == "/parent" && changed) is.stat.num_children = 1;
        return is;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto gone = co_await zk.get_and_watch("/gone"), written = co_await zk.get_and_watch("/written");
        const auto as_it_was = co_await zk.get_and_watch("/same");
        const auto made = co_await zk.exists_and_watch("/new");
        const auto parent = co_await zk.children_and_watch("/parent");
        r.server.reachable = false;
        r.server.drop();
        co_await r.server.until([&] { return zk.state() == session_state::suspended; });
        changed = true;
        r.server.reachable = true;
        watch_event event = co_await gone.changes.changed();
        CHECK(event.what == node_change::removed);
        event = co_await written.changes.changed();
        CHECK(event.what == node_change::data_changed);
        event = co_await made.changes.changed();
        CHECK(event.what == node_change::created);
        event = co_await parent.changes.changed();
        CHECK(event.what == node_change::children_changed);
        // The watch of the node that is as it was stands again; the others, which the questions have set, are removed.
        co_await r.server.until([&] { return r.core->watches() == 1 && r.server.watched("/same"); });
        r.server.fire(node_event::removed, "/same");
        event = co_await as_it_was.changes.changed();
        CHECK(event.what == node_change::removed);
        CHECK_FALSE(r.server.watched("/gone"));
    };
    r.run(body);
}
