// Roots of clients: views of one client, and a chroot that is created.

#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/error.hpp>
#include <zkasio/locks/mutex.hpp>

#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("rooted: requests, watches, a cache and a lock below a root", "[rooted]") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "rooted");
        const client app = zk.rooted(dir + "/app");
        co_await app.create("/a", "x", with_parents());
        create_options sequential;
        sequential.mode(create_mode::ephemeral_sequential);
        const created number = co_await app.create("/", "", sequential);
        CHECK(number.path == "/0000000001");
        read_list all;
        all.get("/a").children("/");
        const std::vector<read_result> found = co_await app.multi_read(all);
        REQUIRE(found.size() == 2);
        CHECK(found[0].data == "x");
        CHECK(found[1].names.size() == 2);
        const std::vector<std::string> ephemeral = co_await app.ephemerals();
        CHECK(ephemeral == std::vector<std::string>(1, number.path));
        const std::size_t n = co_await app.count_below("/");
        CHECK(n == 2);

        const watched<node_data> seen = co_await app.get_and_watch("/a");
        const watch_stream changes = co_await app.add_watch("/", watch_mode::recursive);
        const tree_cache whole(zk, dir + "/app"), cache(app, "/");
        co_await whole.ready();
        co_await cache.ready();
        CHECK(cache.snapshot().find("/a").data() == "x");
        CHECK(whole.snapshot().find(dir + "/app/a").data() == "x");
        co_await zk.set(dir + "/app/a", "y");
        const watch_event fired = co_await seen.changes.changed();
        CHECK(fired.path == "/a");
        const watched_event told = co_await changes.next();
        CHECK(told.path == "/a");
        co_await changes.close();

        const mutex lock(app, "/lock"), same(zk, dir + "/app/lock");
        lock_guard guard = co_await lock.acquire();
        const auto refused = co_await same.try_acquire();
        CHECK_FALSE(refused);
        transaction steps;
        steps.create("/b", "").set("/a", "z");
        const std::vector<step_result> done = co_await guard.commit(steps);
        CHECK(done.front().path == "/b");
        co_await guard.release();
        co_await app.remove(number.path);
    };
    with_client(body);
}

TEST_CASE("create_chroot: the first client creates it", "[create_chroot]") {
    auto remove = [](client zk) -> asio::awaitable<void> {
        co_await zk.remove_recursive("/test-create-chroot");
    };
    with_client(remove);
    auto body = [](client zk) -> asio::awaitable<void> {
        co_await zk.create("/a", "x");
        const node_children names = co_await zk.children("/");
        CHECK(names.names.size() == 1);
    };
    auto again = [](client zk) -> asio::awaitable<void> {
        const node_data there = co_await zk.get("/a");
        CHECK(there.data == "x");
    };
    const client_options below = options(shared_servers() + "/test-create-chroot/app").create_chroot();
    with_client(below, body);
    with_client(below, again);
    with_client(remove);
}
