#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <zkasio/locks/multi_mutex.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/semaphore.hpp>
#include <zkasio/locks/shared_mutex.hpp>
#include <zkasio/locks/unfair_mutex.hpp>

#include <optional>
#include <string>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("create_unless_exists and create_or_set: with a server") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "create-or-set"), path = dir + "/parent/node";
        const create_options with_parents = create_options().parents(missing_parents::create_persistent);
        const std::optional<created> first = co_await zk.create_unless_exists(path, "one", with_parents);
        REQUIRE(first);
        CHECK(first->path == path);
        const std::optional<created> again = co_await zk.create_unless_exists(path, "two", with_parents);
        CHECK_FALSE(again);
        const node_data kept = co_await zk.get(path);
        CHECK(kept.data == "one");

        const node_stat set = co_await zk.create_or_set(path, "three");
        CHECK(set.version == 1);
        CHECK(set.czxid == first->stat.czxid);
        const node_stat made = co_await zk.create_or_set(dir + "/other", "four");
        CHECK(made.version == 0);
        const node_data other = co_await zk.get(dir + "/other");
        CHECK(other.data == "four");
        CHECK(other.stat.czxid == made.czxid);
        const std::error_code orphan = co_await code_of(zk.create_or_set(dir + "/no/parent", "x"));
        CHECK(orphan == zk_errc::no_node);
    };
    with_client(body);
}

TEST_CASE("lock_guard: the sequence number is that of the node's name") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "lock-sequence");
        const mutex one(zk, dir + "/one"), two(zk, dir + "/two");
        const shared_mutex rw(zk, dir + "/rw");
        const semaphore permit(zk, dir + "/semaphore", permits::fixed(3));
        const unfair_mutex flag(zk, dir + "/flag0000000007");
        for (std::int32_t n = 0; n < 3; ++n) {
            lock_guard guard = co_await one.acquire();
            CHECK(guard.sequence() == n);
            CHECK(guard.path().ends_with("000000000" + std::to_string(n)));
            co_await guard.release();
            CHECK(guard.sequence() == n);  // as its path
        }
        const lock_guard owned = co_await two.acquire(acquire_options().owner(lock_owner()));
        CHECK(owned.sequence() == 0);
        lock_guard writing = co_await rw.acquire();
        CHECK(writing.sequence() == 0);
        const lock_guard reading = co_await rw.downgrade(std::move(writing));
        CHECK(reading.path().ends_with("0000000000"));
        CHECK(reading.sequence() == 0);
        const lock_guard also = co_await rw.acquire_shared();
        CHECK(also.path().ends_with(std::to_string(also.sequence().value())));
        const lock_guard permitted = co_await permit.acquire(2);
        CHECK(permitted.sequence() == 0);
        const lock_guard unfair = co_await flag.acquire();
        CHECK_FALSE(unfair.sequence());
        multi_mutex both(zk);
        both.add(one);
        const lock_guard several = co_await both.acquire();
        CHECK_FALSE(several.sequence());
        CHECK_FALSE(lock_guard().sequence());
    };
    with_client(body);
}
