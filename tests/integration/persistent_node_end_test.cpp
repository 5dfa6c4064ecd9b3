// How persistent nodes end: left at any moment, refused, or with their client.
#include "support/fault_proxy.hpp"
#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/membership/persistent_node.hpp>

using namespace zkasio;
using namespace zkasio::test;

namespace {

asio::awaitable<void> nothing_left(client zk, std::string dir) {
    const auto left = co_await children_of(zk, dir);
    CHECK(left.empty());
}

}  // namespace

TEST_CASE("persistent node: destroyed at any moment it leaves nothing") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "persistent-node-quick");
        const std::vector<create_mode> modes{create_mode::ephemeral, create_mode::persistent,
                                             create_mode::ephemeral_sequential};
        for (const create_mode mode : modes)
            for (int steps = 0; steps < 30; ++steps) {
                {
                    const persistent_node node(zk, dir + "/node", "x", persistent_node_options().mode(mode));
                    co_await turns(steps);
                }
                co_await zk.idle();
                co_await nothing_left(zk, dir);
            }
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("persistent node: cancelled waits end at once and the node goes on") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "persistent-node-cancel");
        auto create_and_leave = [&]() -> asio::awaitable<void> {
            const persistent_node node(zk, dir + "/node", "x");
            co_await node.created();
            co_await node.set_data("y");
            co_await node.leave();
        };
        const int cancelled = co_await cancel_everywhere(create_and_leave);
        CHECK(cancelled > 3);
        co_await zk.idle();
        co_await nothing_left(zk, dir);
        co_await until_quiet(zk, dir);
    };
    with_client(body);
}

TEST_CASE("persistent node: cut connections leave it standing once and with the last data") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "persistent-node-cuts");
        const auto executor = co_await asio::this_coro::executor;
        const std::vector<create_mode> modes{create_mode::ephemeral, create_mode::ephemeral_sequential};
        for (const create_mode mode : modes) {
            fault_proxy proxy(first_server());
            const test_client cut(executor, options(proxy.address()).retry(retry_policy::forever(1ms, 5ms)));
            co_await cut.connected();
            // Each connection lets a little more pass than the one before, so that answers are lost.
            proxy.plan_connections([](std::size_t n) {
                fault_proxy::plan plan;
                if (n < 20) plan.cut_replies_after = 60 + 10 * n;
                return plan;
            });
            proxy.cut_all();
            const persistent_node node(cut, dir + "/node", "first", persistent_node_options().mode(mode));
            co_await node.created();
            for (int i = 0; i < 20; ++i) co_await node.set_data(std::to_string(i));
            const std::string path = co_await node.created();
            auto names = co_await children_of(zk, dir);
            CHECK(names.size() == 1);
            const node_data now = co_await zk.get(path);
            CHECK(now.data == "19");
            co_await node.leave();
            co_await cut.idle();
            co_await nothing_left(zk, dir);
            co_await cut.close();
        }
    };
    with_client(body);
}

TEST_CASE("persistent node: destroyed while the answer to its create is lost it leaves nothing") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "persistent-node-lost");
        const auto executor = co_await asio::this_coro::executor;
        for (int steps = 1; steps < 12; ++steps) {
            fault_proxy proxy(first_server());
            // The answer to the connect request is 41 bytes long, and passes; of the next one only the beginning does.
            proxy.plan_connections([](std::size_t n) {
                fault_proxy::plan plan;
                if (n == 0) plan.cut_replies_after = 45;
                return plan;
            });
            const test_client cut(executor, options(proxy.address()));
            co_await cut.connected();
            {
                const persistent_node node(cut, dir + "/node", "x");
                co_await turns(steps);
            }
            co_await cut.idle();
            co_await nothing_left(zk, dir);
            co_await cut.close();
        }
    };
    with_client(body);
}

TEST_CASE("persistent node: what the servers refuse for good ends it with words") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "persistent-node-refused");
        co_await zk.create(dir + "/ephemeral", "", create_options().mode(create_mode::ephemeral));
        const persistent_node below(zk, dir + "/ephemeral/node");
        const std::string text = co_await message_of(below.created());
        CHECK(text.starts_with("persistent_node " + dir + "/ephemeral/node: "));
        const std::error_code code = co_await code_of(below.ended());
        CHECK(code == zk_errc::no_children_for_ephemerals);
        CHECK(below.state() == persistent_node_state::ended);
        co_await below.leave();

        co_await zk.create(dir + "/closed", "", create_options().acl(read_only_acl()));
        const persistent_node closed(zk, dir + "/closed/node");
        const std::error_code no_auth = co_await code_of(closed.created());
        CHECK(no_auth == zk_errc::no_auth);
        const persistent_node orphan(zk, dir + "/no/parent", "",
                                     persistent_node_options().parents(missing_parents::fail));
        const std::error_code no_parent = co_await code_of(orphan.ended());
        CHECK(no_parent == zk_errc::no_node);
    };
    with_client(body);
}

TEST_CASE("persistent node: data that are refused leave the node as it was") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "persistent-node-data");
        const persistent_node node(zk, dir + "/node", "good");
        const std::error_code early = co_await code_of(node.set_data(std::string(2'000'000, 'x')));
        CHECK(early == errc::too_large);
        co_await node.created();
        const std::error_code late = co_await code_of(node.set_data(std::string(2'000'000, 'x')));
        CHECK(late == errc::too_large);
        co_await zk.remove(dir + "/node");
        auto again = [&]() -> asio::awaitable<bool> {
            const std::optional<node_stat> stat = co_await zk.exists(dir + "/node");
            co_return stat && stat->data_length == 4;
        };
        co_await eventually(again);
        CHECK(node.state() != persistent_node_state::ended);
    };
    with_client(body);
}

TEST_CASE("persistent node: ends with its client and keeps it open until then") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "persistent-node-closed");
        const auto executor = co_await asio::this_coro::executor;
        const test_client closing(executor, options());
        const persistent_node node(closing, dir + "/node");
        co_await node.created();
        co_await closing.close();
        const std::error_code ended = co_await code_of(node.ended());
        CHECK(ended == errc::client_closed);
        const std::error_code created = co_await code_of(node.created());
        CHECK(created == errc::client_closed);
        co_await nothing_left(zk, dir);
        co_await code_of(node.leave());

        std::optional<persistent_node> last;
        last.emplace(client(executor, options()), dir + "/node");
        co_await last->created();
        last.reset();
        auto gone = [&]() -> asio::awaitable<bool> {
            const auto left = co_await children_of(zk, dir);
            co_return left.empty();
        };
        co_await eventually(gone);
    };
    with_client(body);
}

TEST_CASE("persistent node: leaves at once when there has never been a server") {
    test_loop loop;
    const test_client zk(loop.executor(), options("127.0.0.1:1"));
    auto body = [&]() -> asio::awaitable<void> {
        const persistent_node node(zk, "/node");
        co_await turns(5);
        CHECK(node.state() == persistent_node_state::creating);
        co_await node.leave();
        co_await zk.close();
    };
    loop.run(body());
}
