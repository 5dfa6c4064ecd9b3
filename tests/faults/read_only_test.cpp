// Three real servers, of which two are killed: the third one only reads, for clients that allow it.

#include "support/lock_checks.hpp"
#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <zkasio/cache/node_cache.hpp>
#include <zkasio/locks/mutex.hpp>

#include <array>
#include <string>

using namespace zkasio;
using namespace zkasio::test;

namespace {

constexpr std::array<int, 2> killed{1, 2};

testing::server_options with_read_only_servers() { return testing::server_options().read_without_quorum(); }

client_options reads_of(const test_server& servers) {
    return options(servers.connect_string()).session_timeout(paced(40s)).allow_read_only();
}

void lose_quorum(test_server& servers) {
    for (const int i : killed) servers.kill(i);
}

asio::awaitable<void> regain_quorum(test_server& servers) {
    for (const int i : killed) co_await servers.async_start(i);
}

asio::awaitable<void> until_state(client zk, session_state wanted) {
    auto reached = [zk, wanted]() -> asio::awaitable<bool> { co_return zk.state() == wanted; };
    co_await eventually(reached, 60s);
}

}  // namespace

TEST_CASE("read-only server: reads are answered, writes refused, and a lock is kept if the quorum is back in time") {
    test_server servers(3, with_read_only_servers());
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        const std::string dir = co_await fresh_directory(zk, "read-only"), node = dir + "/node";
        co_await zk.create(node, "before");
        co_await zk.create(dir + "/locks");
        const mutex lock(zk, dir + "/locks");
        lock_guard held = co_await lock.acquire();
        const std::int64_t id = zk.session_now().id();
        const test_client does_not_allow_it(
            executor, options(servers.connect_string()).session_timeout(paced(40s)).connection_timeout(1s));
        // The session becomes one of the ensemble: a local one would end with the connection to its server.
        co_await does_not_allow_it.create(dir + "/ephemeral", bytes(), create_options().mode(create_mode::ephemeral));

        lose_quorum(servers);
        co_await until_state(zk, session_state::read_only);
        const node_data read = co_await zk.get(node);
        CHECK(read.data == "before");
        CHECK_FALSE(co_await zk.exists(dir + "/none"));
        CHECK((co_await zk.children(dir)).names.size() == 3);
        CHECK((co_await zk.get_acl(node)).acl == open_acl());
        const watched<node_data> seen = co_await zk.get_and_watch(node);
        const watched<std::optional<node_stat>> none = co_await zk.exists_and_watch(dir + "/later");
        const watched<node_children> names = co_await zk.children_and_watch(dir);
        const watched<node_data> unchanged = co_await zk.get_and_watch(dir + "/locks");

        std::string refused = co_await message_of(zk.set(node, "no"));
        INFO(refused);
        CHECK(refused.find("only reads: wait for client::connected()") != std::string::npos);
        CHECK(co_await code_of(zk.create(dir + "/no")) == zk_errc::not_read_only);
        CHECK(co_await code_of(zk.remove_recursive(dir + "/none")) == zk_errc::not_read_only);
        CHECK(co_await code_of(zk.sync()) == zk_errc::not_read_only);
        const std::error_code not_allowed = co_await code_of(does_not_allow_it.get(node));
        CHECK(not_allowed == errc::not_connected);
        CHECK(does_not_allow_it.state() == session_state::suspended);
        CHECK(held.held());
        const boot_clock::time_point lease = held.held_until();
        co_await zk.get(node);
        CHECK(held.held_until() == lease);
        CHECK(zk.stats().read_only_connections > 0);

        co_await regain_quorum(servers);
        co_await zk.connected();
        CHECK(zk.session_now().id() == id);
        CHECK(held.held());
        co_await until_state(does_not_allow_it, session_state::connected);
        CHECK(co_await code_of(does_not_allow_it.set(node, "after")) == std::error_code());
        co_await does_not_allow_it.create(dir + "/later");
        CHECK((co_await seen.changes.changed()).what == node_change::data_changed);
        CHECK((co_await none.changes.changed()).what == node_change::created);
        CHECK((co_await names.changes.changed()).what == node_change::children_changed);
        co_await zk.create(dir + "/locks/child");
        co_await zk.set(dir + "/locks", "now");
        CHECK((co_await unchanged.changes.changed()).what == node_change::data_changed);
        CHECK(held.held_until() > lease);
        co_await held.release();
        co_await does_not_allow_it.close();
    };
    with_client_for(240s, reads_of(servers), body);
}

TEST_CASE("read-only server: its answers renew no lease") {
    test_server servers(3, with_read_only_servers());
    auto body = [&](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "no-lease");
        const mutex lock(zk, dir);
        {
            const lock_guard held = co_await lock.acquire();
            lose_quorum(servers);
            auto suspended = [&]() -> asio::awaitable<bool> { co_return zk.state() != session_state::connected; };
            co_await eventually(suspended, 60s);
            const boot_clock::time_point lease = held.held_until();
            co_await until_state(zk, session_state::read_only);
            CHECK(held.held());
            int reads = 0;
            while (held.held()) {
                co_await zk.get(dir);
                ++reads;
                if (held.held()) CHECK(held.held_until() == lease);
                co_await turns(10);
                REQUIRE(boot_clock::now() < lease + paced(5s));
            }
            CHECK(reads > 10);
            CHECK(co_await held.lost() == loss_reason::lease_ended);
            const std::error_code not_acquired = co_await code_of(lock.try_acquire_for(100ms));
            CHECK(not_acquired == errc::not_connected);
            CHECK(zk.state() == session_state::read_only);
            co_await regain_quorum(servers);
        }
        const lock_guard again = co_await lock.acquire(acquire_options().survive_expiry());
        CHECK(again.held());
    };
    with_client_for(240s, reads_of(servers).session_timeout(paced(20s)), body);
}

TEST_CASE("read-only server: a client that begins there gets its session, and its cache the news, from the quorum") {
    test_server servers(3, with_read_only_servers());
    auto body = [&](client first) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        const std::string dir = co_await fresh_directory(first, "begins"), node = dir + "/node";
        co_await first.create(node, "before");
        co_await first.create(dir + "/unchanged");
        lose_quorum(servers);
        const test_client zk(executor, reads_of(servers));
        co_await until_state(zk, session_state::read_only);
        CHECK(zk.session_now().id() == 0);
        CHECK((co_await zk.get(node)).data == "before");
        const watched<node_data> seen = co_await zk.get_and_watch(node);
        const node_cache cached(zk, node);
        co_await cached.ready();
        REQUIRE(static_cast<bool>(cached.get()));
        CHECK(cached.get().data() == "before");

        co_await regain_quorum(servers);
        co_await zk.connected();
        CHECK(zk.session_now().id() != 0);
        co_await zk.set(node, "after");
        CHECK((co_await seen.changes.changed()).what == node_change::data_changed);
        auto has_news = [&]() -> asio::awaitable<bool> {
            co_return cached.get() && cached.get().data() == "after";
        };
        co_await eventually(has_news, 30s);
        co_await zk.close();
    };
    with_client_for(240s, reads_of(servers), body);
}
