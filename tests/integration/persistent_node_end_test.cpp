// How persistent nodes end: left at any moment, refused, or with their client.
#include "support/fault_proxy.hpp"
#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/membership/persistent_node.hpp>

#include <atomic>

#include <unistd.h>

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

TEST_CASE("persistent node: cut connections leave it standing once and with the last data", "[real-bytes]") {
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

TEST_CASE("persistent node: destroyed while the answer to its create is lost it leaves nothing", "[real-bytes]") {
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
        last.emplace(test_client(executor, options()), dir + "/node");
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

TEST_CASE("persistent node: a chroot that is missing ends it with words and not with a busy loop") {
    auto body = [](test_client zk) -> asio::awaitable<void> {
        const std::vector<std::string> paths{"/node", "/deep/node"};
        for (const std::string& path : paths) {
            const persistent_node node(zk, path);
            const std::string text = co_await message_of(node.created());
            CHECK(text.starts_with("persistent_node " + path + ": no such node ("));
            CHECK(text.find("the chroot \"/test-no-such-chroot\" does not exist") != std::string::npos);
        }
        const long requests = requests_of(zk.session_now());
        CHECK(requests < 200);
    };
    with_client(options(shared_servers() + "/test-no-such-chroot"), body);
}

TEST_CASE("persistent node: messages name what was asked for once") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "persistent-node-words");
        const test_client nowhere(co_await asio::this_coro::executor, options("127.0.0.1:1"));
        const persistent_node waits(nowhere, "/a/b");
        const std::string created = co_await message_of(timeout(1ms, waits.created()));
        CHECK(created.starts_with("created /a/b: timed out (no connection: "));
        const std::string written = co_await message_of(timeout(1ms, waits.set_data("x")));
        CHECK(written == "set_data /a/b: timed out");
        const std::string other = co_await message_of(timeout(1ms, waits.state_after(waits.state())));
        CHECK(other == "state_after /a/b: timed out");
        const std::string ended = co_await message_of(timeout(1ms, waits.ended()));
        CHECK(ended == "ended /a/b: timed out");
        co_await nowhere.close();

        const persistent_node node(zk, dir + "/node");
        const std::string large = co_await message_of(node.set_data(std::string(2'000'000, 'x')));
        CHECK(large.starts_with("set_data " + dir + "/node: request too large (2000000 bytes, and there is room for "));
        co_await zk.create(dir + "/ephemeral", "", create_options().mode(create_mode::ephemeral));
        const persistent_node below(zk, dir + "/ephemeral/node");
        const std::string refused = co_await message_of(below.created());
        CHECK(refused == "persistent_node " + dir + "/ephemeral/node: an ephemeral node cannot have children (create)");
    };
    with_client(body);
}

TEST_CASE("persistent node: large data are refused alone and cancelled calls leave nothing") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "persistent-node-many");
        const auto executor = co_await asio::this_coro::executor;
        const persistent_node node(zk, dir + "/node", "0");
        running one(executor, node.set_data("1"));
        running bad(executor, node.set_data(std::string(2'000'000, 'x')));
        running two(executor, node.set_data("2"));
        running dropped(executor, node.set_data("3"));
        dropped.cancel();
        const std::error_code first = co_await one.code(), large = co_await bad.code();
        const std::error_code second = co_await two.code();
        CHECK(!first);
        CHECK(large == errc::too_large);
        CHECK(!second);
        co_await dropped.code();
        // Cancelled or not, it is the last that counts.
        auto written = [&]() -> asio::awaitable<bool> {
            const node_data now = co_await zk.get(dir + "/node");
            co_return now.data == "3";
        };
        co_await eventually(written);
    };
    with_client(body);
}

TEST_CASE("persistent node: one that may be created and not written stands and leaves", "[real-bytes]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "persistent-node-unwritable");
        const auto executor = co_await asio::this_coro::executor;
        const std::vector<bool> both{false, true};
        for (const bool lose_answer : both) {
            fault_proxy proxy(first_server());
            proxy.plan_connections([lose_answer](std::size_t n) {
                fault_proxy::plan plan;
                if (n == 0 && lose_answer) plan.cut_replies_after = 45;
                return plan;
            });
            const test_client cut(executor, options(proxy.address()));
            co_await cut.connected();
            const persistent_node node(cut, dir + "/node", "x", persistent_node_options().acl(read_only_acl()));
            const std::error_code created = co_await code_of(node.created());
            CHECK(!created);
            const std::error_code refused = co_await code_of(node.set_data("y"));
            CHECK(refused == zk_errc::no_auth);
            CHECK(node.state() == persistent_node_state::standing);
            co_await code_of(node.leave());
            co_await cut.idle();
            co_await nothing_left(zk, dir);
            co_await cut.close();
        }
    };
    with_client(body);
}

TEST_CASE("persistent node: a sequential one that outlives sessions is found in the next one", "[real-bytes]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "persistent-node-orphan");
        const auto executor = co_await asio::this_coro::executor;
        std::atomic<bool> in_reach{false};
        fault_proxy proxy(first_server());
        proxy.plan_connections([&in_reach](std::size_t n) {
            fault_proxy::plan plan;
            if (n == 0) {
                plan.cut_replies_after = 45;
            } else if (!in_reach) {
                // Nothing reaches the server: a reconnection in between would end the thief's connection.
                plan.cut_requests_after = 0;
            }
            return plan;
        });
        const test_client cut(executor, options(proxy.address()));
        co_await cut.connected();
        const session before = cut.session_now();
        const session_credentials stolen = co_await cut.credentials();
        const persistent_node node(cut, dir + "/node-", "x",
                                   persistent_node_options().mode(create_mode::persistent_sequential));
        auto applied = [&]() -> asio::awaitable<bool> {
            const auto names = co_await children_of(zk, dir);
            co_return names.size() == 1;
        };
        co_await eventually(applied);
        const test_client thief(executor, options().resume(stolen));
        co_await thief.connected();
        co_await thief.close();
        in_reach = true;
        co_await node.created();
        CHECK(cut.session_now().id() != before.id());
        const auto names = co_await children_of(zk, dir);
        CHECK(names.size() == 1);
        co_await node.leave();
        co_await nothing_left(zk, dir);
        co_await cut.close();
    };
    with_client(body);
}

TEST_CASE("persistent node: leaving waits for no other that is leaving") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "persistent-node-ends-second");
        fault_proxy proxy(first_server());
        const test_client cut(co_await asio::this_coro::executor, options(proxy.address()));
        std::optional<persistent_node> first(std::in_place, cut, dir + "/node", "first");
        co_await first->created();
        proxy.silence(true);
        first.reset();
        const persistent_node second(cut, dir + "/node", "second");
        co_await turns(20);
        const std::error_code left = co_await code_of(timeout(2s, second.leave()));
        CHECK(!left);
        proxy.silence(false);
        co_await cut.idle();
        co_await nothing_left(zk, dir);
        co_await cut.close();
    };
    with_client(body);
}

TEST_CASE("persistent node: the loop is destroyed while it stands", "[real-loop][leaves]") {
    auto io = std::make_unique<asio::io_context>();
    std::optional<client> zk(std::in_place, io->get_executor(), options());
    // What is left of it goes with its session, later.
    static int times = 0;
    const std::string path = "/persistent-node-no-loop-" + std::to_string(::getpid()) + "-" + std::to_string(++times);
    std::optional<persistent_node> node(std::in_place, *zk, path);
    bool stands = false;
    auto created = [&]() -> asio::awaitable<void> {
        co_await node->created();
        stands = true;
    };
    asio::co_spawn(*io, created(), [](std::exception_ptr) {});
    while (!stands) io->run_one();
    asio::co_spawn(*io, node->ended(), [](std::exception_ptr) {});
    io->poll();
    SECTION("before the node") {
        zk.reset();
        CHECK(node->state() == persistent_node_state::standing);
        node.reset();
        io.reset();
    }
    SECTION("and what has begun to leave is dropped with it") {
        node.reset();
        zk.reset();
        io.reset();
    }
}
