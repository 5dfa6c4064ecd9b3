#include "interop/structures_peers.hpp"
#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <zkasio/queues/work_queue.hpp>

#include <set>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace queue_tests {

put_options priority(int n) {
    put_options how;
    how.priority(n);
    return how;
}

TEST_CASE("kazoo's LockingQueue: it consumes what ours puts, and ours what it puts, by priority") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-queue") + "/jobs";
        peer kazoo(co_await asio::this_coro::executor, "kazoo-structures");
        co_await kazoo.ready();
        const work_queue ours(zk, dir);
        co_await ours.put("second");
        co_await ours.put("third");
        co_await ours.put("first", priority(5));
        co_await ask(kazoo, "x consume locking " + dir + " 3", "consumed,first,second,third");
        co_await ask(kazoo, "x put locking " + dir + " b", "put");
        co_await ask(kazoo, "x put locking " + dir + " a 7", "put");
        co_await zk.sync(dir);
        const std::string a = co_await ours.take();
        const std::string b = co_await ours.take();
        CHECK(a == "a");
        CHECK(b == "b");
        const std::size_t left = co_await count_children(zk, dir + "/entries");
        CHECK(left == 0);
        co_await kazoo.exit();
    };
    with_client(body);
}

TEST_CASE("kazoo's LockingQueue: what one of both has claimed, the other one does not get") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-queue-claims") + "/jobs";
        peer kazoo(co_await asio::this_coro::executor, "kazoo-structures");
        co_await kazoo.ready();
        const work_queue ours(zk, dir);
        co_await ours.put("ours");
        co_await ours.put("theirs");
        const delivery job = co_await ours.receive();
        CHECK(job.item() == "ours");
        co_await ask(kazoo, "x consume locking " + dir + " 1", "consumed,theirs");
        co_await job.done();
        const std::size_t left = co_await count_children(zk, dir + "/entries");
        CHECK(left == 0);
        const work_queue_info info = co_await ours.info();
        CHECK(info.claimed == 0);
        co_await kazoo.exit();
    };
    with_client(body);
}

TEST_CASE("kazoo's LockingQueue: many items, consumers of both: each item is consumed once") {
    auto body = [](client zk) -> asio::awaitable<void> {
        constexpr std::size_t items = 60, each = items / 3;
        const std::string dir = co_await fresh_directory(zk, "interop-queue-load") + "/jobs";
        const auto executor = co_await asio::this_coro::executor;
        peer kazoo(executor, "kazoo-structures");
        co_await kazoo.ready();
        const work_queue ours(zk, dir);
        std::vector<std::string> all;
        for (std::size_t i = 0; i < items; ++i) all.push_back("item" + std::to_string(i));
        co_await ours.put_all(all);
        std::multiset<std::string> seen;
        const std::string consume = " consume locking " + dir + " " + std::to_string(each);
        kazoo.send("a" + consume);
        kazoo.send("b" + consume);
        for (std::size_t i = 0; i < each; ++i) {
            const delivery job = co_await ours.receive();
            seen.insert(job.item());
            co_await job.done();
        }
        for (const std::string id : {"a", "b"}) {
            const std::string answer = co_await kazoo.expect(id);
            for (std::size_t at = answer.find(','); at != std::string::npos;) {
                const std::size_t end = answer.find(',', at + 1);
                seen.insert(answer.substr(at + 1, end == std::string::npos ? end : end - at - 1));
                at = end;
            }
        }
        CHECK(seen == std::multiset<std::string>(all.begin(), all.end()));
        co_await kazoo.exit();
    };
    with_client(body);
}

}  // namespace queue_tests
