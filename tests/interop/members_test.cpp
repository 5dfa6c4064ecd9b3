// Groups, persistent nodes and partitioners, shared with Curator and kazoo.
#include "interop/peer.hpp"
#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/membership/group.hpp>
#include <zkasio/membership/partitioner.hpp>

#include <iterator>
#include <sstream>

using namespace zkasio;
using namespace zkasio::test;

namespace {

std::string ids_in(const group_view& view) {
    std::string text;
    for (const member_info& m : view.members) text += text.empty() ? m.id : "," + m.id;
    return text;
}

asio::awaitable<void> until_members(const group_observer& observer, std::string ids) {
    for (group_view view; ids_in(view) != ids || !view.current;) view = co_await observer.next();
}

// Asks the peer again and again: it hears of changes when it likes.
asio::awaitable<void> until_answer(peer& process, std::string command, std::string answer) {
    auto reached = [&]() -> asio::awaitable<bool> {
        process.send(command);
        const std::string said = co_await process.expect(command.substr(0, command.find(' ')));
        co_return said == answer;
    };
    co_await eventually(reached, 40s);
}

asio::awaitable<void> work_until_cancelled(held_partition&) {
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::use_awaitable);
}

std::vector<std::string> words_of(const std::string& text) {
    std::istringstream in(text);
    return std::vector<std::string>(std::istream_iterator<std::string>(in), std::istream_iterator<std::string>());
}

}  // namespace

TEST_CASE("Curator's GroupMember and a group see each other") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-group") + "/group";
        peer curator(co_await asio::this_coro::executor, "curator");
        co_await curator.ready();
        const group g(zk, dir);
        const group_observer observer = g.observe();
        const group_membership ours = co_await g.join("ours", "data of ours");
        curator.send("x acquire member " + dir + " theirs");
        const std::string node = co_await curator.acquired("x");
        CHECK(node == dir + "/theirs");
        co_await until_members(observer, "ours,theirs");
        CHECK(observer.members().find("theirs")->data == "data of theirs");
        co_await until_answer(curator, "x members", "members ours=data of ours theirs=data of theirs");
        co_await ours.set_data("other data");
        co_await until_answer(curator, "x members", "members ours=other data theirs=data of theirs");
        co_await ours.leave();
        co_await until_answer(curator, "x members", "members theirs=data of theirs");
        const group_membership again = co_await g.join("again");
        curator.send("x release");
        co_await curator.expect("x", "released");
        co_await until_members(observer, "again");
        co_await curator.exit();
    };
    with_client(body);
}

TEST_CASE("Curator's PersistentNode and ours wait for each other and come again") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-node");
        peer curator(co_await asio::this_coro::executor, "curator");
        co_await curator.ready();
        curator.send("x acquire node " + dir + "/node theirs");
        const std::string path = co_await curator.acquired("x");
        CHECK(path == dir + "/node");
        co_await zk.sync(path);
        const persistent_node ours(zk, path, "ours");
        while (ours.state() != persistent_node_state::taken) co_await ours.state_after(ours.state());
        const node_data theirs = co_await zk.get(path);
        CHECK(theirs.data == "theirs");
        curator.send("x release");
        co_await curator.expect("x", "released");
        co_await ours.created();
        const node_data now = co_await zk.get(path);
        CHECK(now.data == "ours");
        CHECK(now.stat.ephemeral_owner == zk.session_now().id());
        co_await curator.exit();
    };
    with_client(body);
}

TEST_CASE("kazoo's parties and groups with their names see each other") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-party");
        peer kazoo(co_await asio::this_coro::executor, "kazoo");
        co_await kazoo.ready();
        const std::vector<std::string> kinds = words_of("party shallow-party");
        for (const std::string& kind : kinds) {
            const std::string path = dir + "/" + kind;
            const group_names names = kind == "party" ? group_names::kazoo_party : group_names::kazoo_shallow_party;
            const group g(zk, path, group_options().names(names));
            const group_observer observer = g.observe();
            kazoo.send(kind + " acquire " + kind + " " + path + " the-irs");
            const std::string node = co_await kazoo.acquired(kind);
            co_await until_members(observer, "the-irs");
            CHECK(observer.members().find("the-irs")->path == node);
            const group_membership ours = co_await g.join("our-s");
            co_await until_members(observer, "our-s,the-irs");
            co_await until_answer(kazoo, kind + " members", "members,our-s,the-irs");
            co_await ours.leave();
            co_await until_answer(kazoo, kind + " members", "members,the-irs");
            kazoo.send(kind + " release");
            co_await kazoo.expect(kind, "released");
            co_await until_members(observer, "");
        }
        co_await kazoo.exit();
    };
    with_client(body);
}

TEST_CASE("kazoo's SetPartitioner and a partitioner share the work") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-partitioner") + "/work";
        const auto executor = co_await asio::this_coro::executor;
        peer kazoo(executor, "kazoo");
        co_await kazoo.ready();
        const std::vector<std::string> all = words_of("p0 p1 p2 p3 p4");
        const partitioner ours(zk, dir, all, partitioner_options().id("a").settle(100ms));
        running work(executor, ours.run(work_until_cancelled));
        auto owns = [&](std::string wanted) -> asio::awaitable<void> {
            const std::vector<std::string> partitions = words_of(wanted);
            auto reached = [&]() -> asio::awaitable<bool> {
                co_return ours.owned() == partitions && ours.state() == partitioner_state::acquired;
            };
            co_await eventually(reached, 40s);
        };
        co_await owns("p0 p1 p2 p3 p4");
        kazoo.send("x share " + dir + " b p0,p1,p2,p3,p4");
        co_await kazoo.expect("x", "sharing");
        co_await until_answer(kazoo, "x owned", "owned,p1,p3");
        co_await owns("p0 p2 p4");
        kazoo.send("x finish");
        co_await kazoo.expect("x", "finished");
        co_await owns("p0 p1 p2 p3 p4");
        kazoo.send("y share " + dir + " c p0,p1,p2,p3,p4");
        co_await kazoo.expect("y", "sharing");
        co_await until_answer(kazoo, "y owned", "owned,p1,p3");
        work.cancel();
        co_await work.code();
        co_await until_answer(kazoo, "y owned", "owned,p0,p1,p2,p3,p4");
        kazoo.send("y finish");
        co_await kazoo.expect("y", "finished");
        co_await kazoo.exit();
    };
    with_client_for(120s, options(), body);
}
