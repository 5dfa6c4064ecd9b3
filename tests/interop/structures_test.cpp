#include "interop/structures_peers.hpp"
#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <zkasio/barriers/barrier.hpp>
#include <zkasio/config/config_value.hpp>
#include <zkasio/counters/atomic_counter.hpp>

#include <cstdint>
#include <string>

using namespace zkasio;
using namespace zkasio::test;

namespace structures_tests {

TEST_CASE("Curator's and kazoo's barrier: theirs waits for ours, and ours for theirs") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-barrier");
        const auto executor = co_await asio::this_coro::executor;
        structures_peers theirs(executor);
        co_await theirs.ready();
        for (peer* const p : theirs.all()) {
            INFO(p->name());
            const std::string path = dir + "/" + p->name();
            const barrier ours(zk, path);
            const bool closed = co_await ours.set();
            CHECK(closed);
            p->send("waits barrier wait " + path);
            co_await ask(*p, "x barrier set " + path, "set");  // it stands
            CHECK_FALSE(p->answered("waits"));
            const bool opened = co_await ours.remove();
            CHECK(opened);
            co_await p->expect("waits", "passed");

            co_await ask(*p, "x barrier set " + path, "set");
            co_await zk.sync(path);
            const bool set = co_await ours.is_set();
            CHECK(set);
            running passed(executor, ours.wait());
            co_await ask(*p, "x barrier remove " + path, "removed");
            const std::exception_ptr failed = co_await passed.end();
            CHECK_FALSE(failed);
        }
        co_await theirs.exit();
    };
    with_client(body);
}

TEST_CASE("Curator's DistributedAtomicLong and kazoo's Counter: one number") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-counter");
        structures_peers theirs(co_await asio::this_coro::executor);
        co_await theirs.ready();
        const atomic_counter longs(zk, dir + "/long");
        const atomic_counter text(zk, dir + "/text", counter_options().format(kazoo_counter()));
        struct row {
            peer* theirs;
            const atomic_counter* ours;
        };
        for (const row& r : {row{&theirs.curator, &longs}, row{&theirs.kazoo, &text}}) {
            INFO(r.theirs->name());
            const std::string& path = r.ours->path();
            co_await ask(*r.theirs, "x add " + path + " 5", "number 5");
            const std::int64_t here = co_await r.ours->add(-12);
            CHECK(here == -7);
            co_await ask(*r.theirs, "x number " + path, "number -7");
            co_await ask(*r.theirs, "x add " + path + " 4000000000", "number 3999999993");
            co_await zk.sync(path);
            const std::int64_t there = co_await r.ours->get();
            CHECK(there == 3'999'999'993);
        }
        // Created by ours.
        const atomic_counter first(zk, dir + "/ours-first");
        const bool created = co_await first.initialize(41);
        CHECK(created);
        co_await ask(theirs.curator, "x add " + first.path() + " 1", "number 42");
        co_await theirs.exit();
    };
    with_client(body);
}

TEST_CASE("Curator's SharedCount, and kazoo's Counter beside it: a configuration value") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-shared-count");
        structures_peers theirs(co_await asio::this_coro::executor);
        co_await theirs.ready();
        const std::string path = dir + "/count";
        co_await ask(theirs.curator, "x shared-count " + path + " -258", "number -258");
        config_value<std::int32_t> ours(zk, path, curator_count());
        co_await ours.ready();
        CHECK(*ours.value() == -258);
        co_await ours.set(77);
        co_await ask(theirs.curator, "x shared-count " + path, "number 77");
        co_await ask(theirs.kazoo, "x shared-count " + path + " 78", "number 78");
        co_await ask(theirs.curator, "x shared-count " + path, "number 78");
        co_await theirs.exit();
    };
    with_client(body);
}

}  // namespace structures_tests
