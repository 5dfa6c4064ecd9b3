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

client_options own_options(const test_server& servers) {
    return options(servers.connect_string()).session_timeout(paced(40s));
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

TEST_CASE("read-only server: a client of its own reads, and a lock is kept if the quorum is back in time") {
    test_server servers(3, with_read_only_servers());
    auto body = [&](client zk) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        const std::string dir = co_await fresh_directory(zk, "read-only"), node = dir + "/node";
        co_await zk.create(node, "before");
        co_await zk.create(dir + "/locks");
        const mutex lock(zk, dir + "/locks");
        lock_guard held = co_await lock.acquire();
        const std::int64_t id = zk.session_now().id();
        const test_client early(executor, own_options(servers).connection_timeout(3s).read_only());
        const std::error_code has_quorum = co_await code_of(early.connected());
        CHECK(has_quorum == errc::not_connected);

        lose_quorum(servers);
        co_await until_state(zk, session_state::suspended);
        const test_client reader(executor, own_options(servers).connection_timeout(60s).read_only());
        co_await reader.connected();
        const node_data read = co_await reader.get(node);
        CHECK(read.data == "before");
        CHECK_FALSE(co_await reader.exists(dir + "/none"));
        CHECK((co_await reader.children(dir)).names.size() == 2);
        CHECK((co_await reader.get_acl(node)).acl == open_acl());
        const node_cache cached(reader, node);
        co_await cached.ready();
        CHECK(cached.get().data() == "before");
        const watched<node_data> seen = co_await reader.get_and_watch(node);
        CHECK(co_await code_of(reader.set(node, "no")) == zk_errc::not_read_only);
        CHECK(co_await code_of(reader.sync()) == zk_errc::not_read_only);
        CHECK(co_await code_of(mutex(reader, dir + "/locks").acquire()) == zk_errc::not_read_only);
        CHECK(held.held());
        const test_client closed(executor, own_options(servers).connection_timeout(60s).read_only());
        co_await closed.connected();
        const close_result how = co_await closed.close();
        CHECK(how == close_result::confirmed);

        const session of_reader = reader.session_now();
        co_await regain_quorum(servers);
        co_await of_reader.ended();
        const std::error_code watch_end = co_await code_of(seen.changes.changed());
        CHECK(watch_end == errc::session_expired);
        CHECK(co_await code_of(reader.get(node)) == errc::session_expired);
        co_await zk.connected();
        CHECK(zk.session_now().id() == id);
        CHECK(held.held());
        co_await zk.set(node, "after");
        co_await held.release();
        co_await reader.close();
        co_await early.close();
    };
    with_client_for(240s, own_options(servers), body);
}
