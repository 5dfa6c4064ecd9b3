// What a group asks the servers for, and how its observer ends while somebody waits for what it will tell.

#include "unit/support/rig.hpp"

#include <zkasio/membership/group.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

asio::awaitable<void> looked(asio::awaitable<group_view> next) { co_await std::move(next); }

}  // namespace

TEST_CASE("group observer: when it is destroyed, who waits is told, and nothing goes on behind it") {
    rig r;
    r.server.nodes_are_ours = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::optional<group_observer> observer(std::in_place, zk, "/group");
        co_await observer->next();
        running waiting(r.loop.executor(), looked(observer->next()));
        co_await next_turns(r.server);
        observer.reset();
        const std::error_code ended = co_await waiting.code();
        CHECK(ended == errc::client_closed);
        co_await zk.idle();
        CHECK(r.core->watches() == 0);
    };
    r.run(body);
}

TEST_CASE("group observer: what next() returns may be awaited when it is gone") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        std::optional<group_observer> observer(std::in_place, zk, "/group");
        asio::awaitable<group_view> next = observer->next();
        observer.reset();
        const std::error_code ended = co_await code_of(std::move(next));
        CHECK(ended == errc::client_closed);
    };
    r.run(body);
}

namespace {

/// The group "/group", with some children.
class group_rig : public rig {
public:
    group_rig() {
        server.nodes_are_ours = false;
        server.answer = [this](const request& q) {
            reply r;
            r.path = std::string(path_of(q));
            r.stat.czxid = r.stat.mzxid = 1;
            if (std::holds_alternative<children_request>(q)) {
                r.children = names;
                r.stat.pzxid = r.stat.cversion = ++listings;
            }
            if (const auto* c = std::get_if<create_request>(&q)) created.push_back(*c);
            return r;
        };
    }
    std::vector<std::string> names{"a", "b__party__"};
    int listings = 0;
    std::vector<create_request> created;
};

}  // namespace

TEST_CASE("group observer: the same members are not told again when something else has changed") {
    group_rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const group_observer observer(zk, "/group", group_names::kazoo_party);
        group_view view = co_await observer.next();
        while (!view.current) view = co_await observer.next();
        CHECK(view.members.size() == 1);
        running waiting(r.loop.executor(), looked(observer.next()));
        r.names.push_back("no member");
        r.server.fire(node_event::children_changed, "/group");
        co_await r.server.until([&] { return r.server.count("get /group/no member") == 1; });
        for (int i = 0; i < 5; ++i) co_await next_turns(r.server);
        CHECK_FALSE(waiting.ended());
        waiting.cancel();
        co_await waiting.end();
    };
    r.run(body);
}

TEST_CASE("group observer: only where the data say who a member is, or what it has to say, they are read") {
    const std::vector<std::pair<group_names, bool>> all{
        {group_names::curator, true}, {group_names::kazoo_party, true}, {group_names::kazoo_shallow_party, false}};
    for (const auto& [names, reads] : all) {
        group_rig r;
        auto body = [&](client zk) -> asio::awaitable<void> {
            const group_observer observer(zk, "/group", names);
            co_await observer.ready();
            CHECK((r.server.count("get /group/a") > 0) == reads);
        };
        r.run(body);
    }
}

TEST_CASE("group: a member's node has the ACL that was asked for") {
    group_rig r;
    r.server.nodes_are_ours = true;
    const acl wanted(1, acl_entry(permission::read, anyone()));
    auto body = [&](client zk) -> asio::awaitable<void> {
        const group_membership member = co_await group(zk, "/group", group_options().acl(wanted)).join("c");
        REQUIRE(r.created.size() == 1);
        CHECK(r.created.front().path == "/group/c");
        CHECK(r.created.front().acl == wanted);
        CHECK(r.created.front().mode == create_mode::ephemeral);
        co_await member.leave();
    };
    r.run(body);
}

TEST_CASE("group: a directory that is missing is made as a container, and for a party of kazoo to stay") {
    for (const group_names names : {group_names::curator, group_names::kazoo_party}) {
        group_rig r;
        r.server.nodes_are_ours = true;
        bool there = false;
        r.server.answer = [&, serve = r.server.answer](const request& q) -> std::optional<reply> {
            if (const auto* c = std::get_if<create_request>(&q)) {
                if (c->path == "/group") there = true;
                if (!there) return refusal(zk_errc::no_node);
            }
            return serve(q);
        };
        auto body = [&](client zk) -> asio::awaitable<void> {
            const group_membership member = co_await group(zk, "/group", group_options().names(names)).join("c");
            REQUIRE(r.created.size() >= 2);
            CHECK(r.created.front().path == "/group");
            CHECK(r.created.front().mode ==
                  (names == group_names::curator ? create_mode::container : create_mode::persistent));
            co_await member.leave();
        };
        r.run(body);
    }
}
