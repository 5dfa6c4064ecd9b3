#include "support/fault_proxy.hpp"
#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/membership/group.hpp>

using namespace zkasio;
using namespace zkasio::test;

namespace {

std::string text_of(const group_view& view) {
    std::string text;
    for (const member_info& m : view.members) text += m.id + "=" + m.data + " ";
    return text;
}

// Whatever comes in between.
asio::awaitable<void> until_told(const group_observer& observer, std::string members, bool current = true) {
    for (;;) {
        const group_view view = co_await observer.next();
        if (text_of(view) == members && view.current == current) co_return;
    }
}

}  // namespace

TEST_CASE("group: who joins is seen with the data and who leaves is not", "[any-server]") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "group");
        const group g(zk, dir + "/deep/group");
        const group_observer observer = g.observe();
        const group_view none = co_await observer.next();
        CHECK(none.members.empty());
        CHECK(none.current);

        const group_membership a = co_await g.join("a", "1");
        CHECK(a.id() == "a");
        CHECK(a.path() == dir + "/deep/group/a");
        co_await until_told(observer, "a=1 ");
        std::optional<group_membership> b(co_await g.join("b"));
        co_await until_told(observer, "a=1 b= ");
        co_await a.set_data("2");
        co_await until_told(observer, "a=2 b= ");
        const group_view once = co_await g.members();
        CHECK(text_of(once) == "a=2 b= ");
        CHECK(once.find("a")->path == a.path());
        CHECK(observer.members() == once);
        b.reset();
        co_await until_told(observer, "a=2 ");
        co_await a.leave();
        co_await until_told(observer, "");
    };
    with_client(body);
}

TEST_CASE("group: a directory that may not be listed is no empty group") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "group-unlistable");
        const group g(zk, dir);
        const group_membership a = co_await g.join("a");
        const acl unreadable(1, acl_entry(permission::admin | permission::remove, anyone()));
        co_await zk.set_acl(dir, unreadable);
        const std::error_code refused = co_await code_of(g.members());
        CHECK(refused == zk_errc::no_auth);
        const group_observer observer = g.observe();
        const group_view seen = co_await observer.next();
        CHECK_FALSE(seen.readable);
        CHECK(seen.members.empty());
        co_await zk.set_acl(dir, open_acl());
        co_await a.leave();
    };
    with_client(body);
}

TEST_CASE("group: leaves no node and no watch behind") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "group-clean");
        const group g(zk, dir);
        {
            const group_observer observer = g.observe();
            const group_membership member = co_await g.join("a");
            co_await until_told(observer, "a= ");
        }
        co_await zk.idle();
        const auto left = co_await children_of(zk, dir);
        CHECK(left.empty());
        co_await until_quiet(zk, dir);
        auto join = [&]() -> asio::awaitable<void> {
            const group_membership member = co_await g.join("a");
            co_await member.leave();
        };
        const int cancelled = co_await cancel_everywhere(join);
        CHECK(cancelled > 2);
        auto look = [&]() -> asio::awaitable<void> {
            const group_view view = co_await g.members();
            const group_observer observer = g.observe();
            co_await observer.next();
        };
        co_await cancel_everywhere(look);
        co_await zk.idle();
        const auto none = co_await children_of(zk, dir);
        CHECK(none.empty());
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("group: one id is in it once and whoever comes second is refused or waits") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "group-twice");
        const auto executor = co_await asio::this_coro::executor;
        std::optional<group_membership> first(co_await group(zk, dir).join("a", "1"));
        const std::string refused = co_await message_of(group(zk, dir).join("a", "2"));
        CHECK(refused.starts_with("join " + dir + "/a: invalid argument (another persistent_node"));
        CHECK(first->state() == persistent_node_state::standing);

        // It may join again while it is still leaving.
        for (int i = 0; i < 10; ++i) {
            first.reset();
            first.emplace(co_await group(zk, dir).join("a", std::to_string(i)));
            const group_view view = co_await group(zk, dir).members();
            CHECK(text_of(view) == "a=" + std::to_string(i) + " ");
        }

        const test_client other(executor, options());
        std::optional<group_membership> second;
        auto join = [&]() -> asio::awaitable<void> {
            group_membership joined = co_await group(other, dir).join("a", "other");
            second.emplace(std::move(joined));
        };
        running joining(executor, join());
        co_await turns(20);
        CHECK_FALSE(joining.ended());
        co_await first->leave();
        co_await joining.end();
        const group_view view = co_await group(zk, dir).members();
        CHECK(text_of(view) == "a=other ");
        second.reset();
        co_await other.close();

        const std::error_code no_name = co_await code_of(group(zk, dir).join("a/b"));
        CHECK(no_name == errc::invalid_argument);
        const std::error_code empty = co_await code_of(group(zk, dir).join(""));
        CHECK(empty == errc::invalid_argument);
    };
    with_client(body);
}

TEST_CASE("group: heals when its directory is deleted and when sessions expire") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "group-heals");
        const test_client victim(co_await asio::this_coro::executor, options());
        const group_observer observer = group(zk, dir + "/group").observe();
        const group_observer own = group(victim, dir + "/group").observe();
        const group_membership a = co_await group(zk, dir + "/group").join("a", "1");
        const group_membership b = co_await group(victim, dir + "/group").join("b", "2");
        co_await until_told(observer, "a=1 b=2 ");
        for (int i = 0; i < 3; ++i) {
            co_await zk.remove_recursive(dir + "/group");
            co_await a.state_after(persistent_node_state::standing);
            co_await until_told(observer, "a=1 b=2 ");
            co_await expire_session(victim);
            co_await until_told(observer, "a=1 ");
            co_await until_told(observer, "a=1 b=2 ");
        }
        co_await until_told(own, "a=1 b=2 ");
        co_await victim.close();
    };
    with_client(body);
}

TEST_CASE("group: whoever is cut off knows that it is not current") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "group-cut");
        fault_proxy proxy(first_server());
        const test_client cut(co_await asio::this_coro::executor, options(proxy.address()));
        const group_observer observer = group(cut, dir).observe();
        const group_membership a = co_await group(cut, dir).join("a");
        co_await until_told(observer, "a= ");
        proxy.cut_all();
        co_await until_told(observer, "a= ", false);
        const group_membership b = co_await group(zk, dir).join("b");
        co_await until_told(observer, "a= b= ");
        co_await a.leave();
        co_await cut.close();
    };
    with_client(body);
}

TEST_CASE("group: the parties of kazoo") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "group-parties");
        const std::vector<group_names> parties{group_names::kazoo_party, group_names::kazoo_shallow_party};
        for (const group_names names : parties) {
            const group g(zk, dir + "/party", group_options().names(names));
            const group_membership a = co_await g.join("a-1"), again = co_await g.join("a-1"), b = co_await g.join("b");
            const group_view view = co_await g.members();
            CHECK(text_of(view) == "a-1= a-1= b= ");
            CHECK(view.find("b")->path == b.path());
            const std::error_code data = co_await code_of(g.join("c", "data"));
            CHECK(data == errc::invalid_argument);
            const std::error_code set = co_await code_of(b.set_data("data"));
            CHECK(set == errc::invalid_argument);
            const std::vector<std::string> no_names{"", "a/b", ".", "..", std::string("a\0b", 3)};
            for (const std::string& id : no_names) {
                const std::error_code refused = co_await code_of(g.join(id));
                CHECK(refused == errc::invalid_argument);
            }
            co_await a.leave();
            co_await again.leave();
            co_await b.leave();
        }
    };
    with_client(body);
}
