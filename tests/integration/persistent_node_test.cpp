#include "support/fault_proxy.hpp"
#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/membership/persistent_node.hpp>

using namespace zkasio;
using namespace zkasio::test;

namespace {

persistent_node_options in_mode(create_mode mode) { return persistent_node_options().mode(mode); }

asio::awaitable<void> until_data(client zk, std::string path, std::string data) {
    auto there = [&]() -> asio::awaitable<bool> {
        const std::optional<node_stat> stat = co_await zk.exists(path);
        if (!stat) co_return false;
        const node_data now = co_await zk.get(path);
        co_return now.data == data;
    };
    co_await eventually(there);
}

asio::awaitable<void> until_state(const persistent_node& node, persistent_node_state wanted) {
    for (persistent_node_state now = node.state(); now != wanted;) now = co_await node.state_after(now);
}

asio::awaitable<std::int64_t> owner_of(client zk, std::string path) {
    const std::optional<node_stat> stat = co_await zk.exists(path);
    co_return stat ? stat->ephemeral_owner : -1;
}

}  // namespace

TEST_CASE("persistent node: stands with its data and is gone when it has left") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "persistent-node");
        const persistent_node node(zk, dir + "/deep/node", "hello");
        const std::string path = co_await node.created();
        CHECK(path == dir + "/deep/node");
        CHECK(node.state() == persistent_node_state::standing);
        const node_data stands = co_await zk.get(path);
        CHECK(stands.data == "hello");
        CHECK(stands.stat.ephemeral_owner == zk.session_now().id());
        co_await node.set_data("better");
        const node_data written = co_await zk.get(path);
        CHECK(written.data == "better");
        CHECK(written.stat.czxid == stands.stat.czxid);

        co_await node.leave();
        co_await node.ended();
        CHECK(node.state() == persistent_node_state::ended);
        const auto left = co_await zk.exists(path);
        CHECK_FALSE(left);
        const std::string again = co_await message_of(node.created());
        CHECK(again == "persistent_node " + path + ": client closed (it has left)");
        const std::error_code late = co_await code_of(node.set_data("late"));
        CHECK(late == errc::client_closed);
        co_await node.leave();
        co_await zk.idle();
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("persistent node: an operator removes it or its parent and it comes again with the newest data",
          "[any-server]") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "persistent-node-removed");
        const persistent_node node(zk, dir + "/deep/node", "first");
        const std::string path = co_await node.created();
        for (int i = 0; i < 5; ++i) {
            co_await zk.remove(path);
            co_await until_data(zk, path, "first");
        }
        co_await node.set_data("second");
        co_await zk.remove_recursive(dir + "/deep");
        co_await until_data(zk, path, "second");
        // What somebody else writes stays, and does not come again.
        co_await zk.set(path, "an operator's");
        co_await node.set_data("third");
        co_await until_data(zk, path, "third");
        co_await zk.set(path, "an operator's");
        co_await turns(20);
        co_await until_data(zk, path, "an operator's");
        co_await zk.remove(path);
        co_await until_data(zk, path, "third");
    };
    with_client(body);
}

TEST_CASE("persistent node: stands anew in each session") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "persistent-node-expiry");
        const test_client victim(co_await asio::this_coro::executor, options());
        const persistent_node node(victim, dir + "/node", "here");
        co_await node.created();
        for (int i = 0; i < 3; ++i) {
            const std::int64_t before = victim.session_now().id();
            co_await expire_session(victim);
            auto moved = [&]() -> asio::awaitable<bool> {
                const std::int64_t owner = co_await owner_of(zk, dir + "/node");
                co_return owner != before && owner == victim.session_now().id();
            };
            co_await eventually(moved);
            co_await until_data(zk, dir + "/node", "here");
        }
        co_await node.leave();
        const auto left = co_await children_of(zk, dir);
        CHECK(left.empty());
        co_await victim.close();
    };
    with_client(body);
}

TEST_CASE("persistent node: the node of another session is waited for and never touched") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "persistent-node-taken");
        const auto executor = co_await asio::this_coro::executor;
        const test_client other(executor, options());
        co_await other.create(dir + "/node", "theirs", create_options().mode(create_mode::ephemeral));
        {
            const persistent_node leaver(zk, dir + "/node", "leaver");
            co_await until_state(leaver, persistent_node_state::taken);
            co_await leaver.leave();
        }
        const persistent_node node(zk, dir + "/node", "ours");
        co_await until_state(node, persistent_node_state::taken);
        const node_data theirs = co_await zk.get(dir + "/node");
        CHECK(theirs.data == "theirs");
        co_await other.close();
        const std::string path = co_await node.created();
        const std::int64_t owner = co_await owner_of(zk, path);
        CHECK(owner == zk.session_now().id());

        // So is a node that no session owns: only an operator can tell what it is for.
        co_await node.leave();
        co_await zk.create(dir + "/node", "an operator's");
        const persistent_node patient(zk, dir + "/node", "ours");
        co_await until_state(patient, persistent_node_state::taken);
        co_await zk.remove(dir + "/node");
        co_await until_data(zk, dir + "/node", "ours");
    };
    with_client(body);
}

TEST_CASE("persistent node: a node that its session owns already is ours") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "persistent-node-resumed");
        const created old = co_await zk.create(dir + "/node", "old", create_options().mode(create_mode::ephemeral));
        const persistent_node node(zk, dir + "/node", "new");
        co_await node.created();
        const node_data now = co_await zk.get(dir + "/node");
        CHECK(now.data == "new");
        CHECK(now.stat.czxid == old.stat.czxid);
        co_await node.leave();
        const auto left = co_await zk.exists(dir + "/node");
        CHECK_FALSE(left);
    };
    with_client(body);
}

TEST_CASE("persistent node: one that is not ephemeral takes over what stands there and outlives sessions") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "persistent-node-container");
        const test_client victim(co_await asio::this_coro::executor, options());
        co_await zk.create(dir + "/node", "old");
        const persistent_node node(victim, dir + "/node", "new", in_mode(create_mode::container));
        co_await node.created();
        const node_data taken = co_await zk.get(dir + "/node");
        CHECK(taken.data == "new");
        co_await zk.set(dir + "/node", "an operator's");
        co_await expire_session(victim);
        co_await victim.connected();
        co_await node.created();
        co_await until_data(zk, dir + "/node", "an operator's");
        co_await zk.remove(dir + "/node");
        co_await until_data(zk, dir + "/node", "new");
        // Its children are not ours.
        co_await zk.create(dir + "/node/child");
        co_await node.leave();
        const auto kept = co_await zk.exists(dir + "/node/child");
        CHECK(kept);
        {
            const persistent_node other(victim, dir + "/other", "x", in_mode(create_mode::persistent));
            co_await other.created();
        }
        co_await victim.idle();
        const auto other = co_await zk.exists(dir + "/other");
        CHECK_FALSE(other);
        co_await victim.close();
    };
    with_client(body);
}

TEST_CASE("persistent node: a sequential one keeps its name unless that is taken") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "persistent-node-sequential");
        const test_client victim(co_await asio::this_coro::executor, options());
        const persistent_node node(victim, dir + "/node-", "x", in_mode(create_mode::ephemeral_sequential));
        const std::string path = co_await node.created();
        CHECK(path.starts_with(dir + "/_c_"));
        CHECK(path.ends_with("-node-0000000000"));
        co_await zk.remove(path);
        co_await until_data(zk, path, "x");
        const std::int64_t before = victim.session_now().id();
        co_await expire_session(victim);
        auto moved = [&]() -> asio::awaitable<bool> {
            const std::int64_t owner = co_await owner_of(zk, path);
            co_return owner != before && owner > 0;
        };
        co_await eventually(moved);

        auto taken = transaction();
        taken.remove(path).create(path, "theirs");
        co_await zk.multi(taken);
        auto renamed = [&]() -> asio::awaitable<bool> {
            const auto names = co_await children_of(zk, dir);
            co_return names.size() == 2;
        };
        co_await eventually(renamed);
        const std::string second = co_await node.created();
        CHECK(second != path);
        co_await until_data(zk, second, "x");
        co_await node.leave();
        const auto left = co_await children_of(zk, dir);
        CHECK(left == std::vector<std::string>{path.substr(dir.size() + 1)});
        co_await victim.close();
    };
    with_client(body);
}

TEST_CASE("persistent node: the root is refused") {
    auto body = [](client zk) -> asio::awaitable<void> {
        std::string text;
        try {
            const persistent_node root(zk, "/");
        } catch (const error& e) {
            text = e.what();
        }
        CHECK(text == "persistent_node /: invalid path (the root stands by itself)");
        co_return;
    };
    with_client(body);
}
