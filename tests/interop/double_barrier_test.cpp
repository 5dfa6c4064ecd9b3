#include "interop/structures_peers.hpp"
#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <zkasio/barriers/double_barrier.hpp>

#include <optional>
#include <string>

using namespace zkasio;
using namespace zkasio::test;

namespace double_barrier_tests {

asio::awaitable<void> until_children(client zk, std::string dir, std::size_t n) {
    auto reached = [&]() -> asio::awaitable<bool> {
        const bool there = co_await count_children(zk, dir) == n;
        co_return there;
    };
    co_await eventually(reached);
}

// The entry, and what it was made by.
struct entering {
    std::optional<barrier_entry> entry;
    asio::awaitable<void> enter(double_barrier where) { entry = co_await where.enter(); }
    asio::awaitable<void> leave() { co_await entry->leave(); }
};

asio::awaitable<void> ended(const running& task) {
    const std::exception_ptr failed = co_await task.end();
    if (failed) std::rethrow_exception(failed);
}

TEST_CASE("double barrier: ours, Curator's and kazoo's members begin together, whoever comes last") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-double-barrier");
        const auto executor = co_await asio::this_coro::executor;
        structures_peers theirs(executor);
        co_await theirs.ready();
        for (const std::string last : {"ours", "curator", "kazoo"}) {
            INFO(last << " comes last");
            const std::string path = dir + "/" + last;
            const double_barrier ours(zk, path, 3);
            entering own;
            std::optional<running> task;
            std::size_t there = 0;
            const auto enter = [&](const std::string& who) {
                if (who == "ours") task.emplace(executor, own.enter(ours));
                if (who == "curator") theirs.curator.send("c enter " + path + " 3 60000");
                if (who == "kazoo") theirs.kazoo.send("k enter " + path + " 3 0");
            };
            for (const std::string who : {"ours", "curator", "kazoo"}) {
                if (who == last) continue;
                enter(who);
                co_await until_children(zk, path, ++there);
            }
            CHECK_FALSE((task && task->ended()));
            CHECK_FALSE(theirs.curator.answered("c"));
            CHECK_FALSE(theirs.kazoo.answered("k"));
            enter(last);
            co_await ended(*task);
            co_await theirs.curator.expect("c", "entered");
            co_await theirs.kazoo.expect("k", "entered");
            CHECK(own.entry->held());

            // Curator and kazoo wait for us, and we for them.
            theirs.curator.send("c leave");
            theirs.kazoo.send("k leave");
            co_await zk.sync(path);
            CHECK_FALSE(theirs.curator.answered("c"));
            CHECK_FALSE(theirs.kazoo.answered("k"));
            co_await own.entry->leave();
            co_await theirs.curator.expect("c", "left");
            co_await theirs.kazoo.expect("k", "left");
            co_await until_children(zk, path, 0);
        }
        co_await theirs.exit();
    };
    with_client(body);
}

TEST_CASE("double barrier: who leaves first waits for the others, whichever library they use") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-double-barrier-leave");
        const auto executor = co_await asio::this_coro::executor;
        structures_peers theirs(executor);
        co_await theirs.ready();
        for (const bool with_kazoo : {false, true}) {
            INFO((with_kazoo ? "kazoo" : "Curator"));
            peer& other = with_kazoo ? theirs.kazoo : theirs.curator;
            const std::string path = dir + "/" + (with_kazoo ? "kazoo" : "curator");
            const double_barrier ours(zk, path, 2);
            for (int round = 0; round < 3; ++round) {  // no round finds the `ready` of the one before
                other.send("x enter " + path + " 2 60000");
                co_await until_children(zk, path, 1);
                CHECK_FALSE(other.answered("x"));
                entering own;
                co_await own.enter(ours);
                co_await other.expect("x", "entered");
                const running leaving(executor, own.leave());
                co_await zk.sync(path);
                CHECK_FALSE(leaving.ended());
                other.send("x leave");
                co_await other.expect("x", "left");
                co_await ended(leaving);
                co_await until_children(zk, path, 0);
            }
        }
        co_await theirs.exit();
    };
    with_client(body);
}

}  // namespace double_barrier_tests
