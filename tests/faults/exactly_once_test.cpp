// A connection that breaks behind each byte of what a queue and a counter send and receive: nothing is lost, nothing is
// done twice, and no caller hears of it.

#include "support/fault_proxy.hpp"
#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/queues/work_queue.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::test;

namespace exactly_once_tests {
namespace {

constexpr std::size_t most_bytes = 20'000, lanes = 64;

enum class direction {
    requests,
    replies,
};

struct sweep {
    client observer;
    std::string dir;
    direction of;
    std::size_t next = 0;  // the byte behind which the next connection breaks
    bool over = false;     // the last connection was not broken
    std::size_t broken = 0;
};

// What one process does with a queue and a counter of its own.
asio::awaitable<void> use(client zk, std::string path) {
    const work_queue queue(zk, path + "/q");
    co_await queue.put("job");
    {
        const delivery d = co_await queue.receive();
        CHECK(d.item() == "job");
        CHECK(d.attempt() == 1);
        co_await d.done();
    }
    const std::optional<std::string> none = co_await queue.try_take();
    CHECK_FALSE(none);
    const atomic_counter counter(zk, path + "/n");
    for (const std::int64_t expected : {1, 2}) {
        const std::int64_t n = co_await counter.add(1);
        CHECK(n == expected);
    }
}

asio::awaitable<void> play(std::shared_ptr<sweep> s, std::size_t at) {
    INFO((s->of == direction::requests ? "requests" : "replies") << ", cut behind " << at << " bytes");
    fault_proxy proxy(first_server());
    proxy.plan_connections([of = s->of, at](std::size_t n) {
        fault_proxy::plan p;
        if (n == 0) (of == direction::requests ? p.cut_requests_after : p.cut_replies_after) = at;
        return p;
    });
    const test_client zk(co_await asio::this_coro::executor, options(proxy.address()));
    const std::string path = s->dir + "/" + std::to_string(at);
    const std::error_code failed = co_await code_of(use(zk, path));
    CHECK_FALSE(failed);
    s->broken += proxy.connections() > 1;
    if (proxy.connections() == 1) s->over = true;
    co_await zk.close();
    co_await s->observer.sync(path);
    for (const char* directory : {"/q/entries", "/q/taken", "/q/later", "/q/dead"}) {
        const std::size_t left = co_await count_children(s->observer, path + directory);
        CHECK(left == 0);
    }
}

asio::awaitable<void> lane(std::shared_ptr<sweep> s) {
    while (!s->over && s->next < most_bytes) co_await play(s, s->next++);
}

}  // namespace

TEST_CASE("a connection that breaks behind any byte: queue and counter do each thing once", "[clear]") {
    for (const direction of : {direction::requests, direction::replies}) {
        auto body = [&](client observer) -> asio::awaitable<void> {
            const std::string dir = co_await fresh_directory(observer, "exactly-once");
            const auto s = std::make_shared<sweep>(sweep{observer, dir, of});
            std::vector<running> all;
            for (std::size_t i = 0; i < lanes; ++i) all.emplace_back(co_await asio::this_coro::executor, lane(s));
            for (const running& r : all) {
                const std::exception_ptr failed = co_await r.end();
                if (failed) std::rethrow_exception(failed);
            }
            CHECK(s->over);
            CHECK(s->broken > 2000);
            co_await observer.remove_recursive(dir);
        };
        with_client_for(100s, options().session_timeout(paced(20s)), body);
    }
}

}  // namespace exactly_once_tests
