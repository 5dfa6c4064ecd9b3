// What somebody reads whose test is wrong, or hangs.

#include "support/catch.hpp"
#include "support/texts.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/testing/fake_ensemble.hpp>
#include <zkasio/testing/waits.hpp>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using zkasio::test::failure_of;
using zkasio::test::has;
using zkasio::testing::fake_ensemble;

asio::awaitable<void> keep_lock(zkasio::client zk, std::string path) {
    const zkasio::mutex lock(zk, path);
    const zkasio::lock_guard guard = co_await lock.acquire();
    asio::steady_timer for_ever(zk.get_executor(), asio::steady_timer::time_point::max());
    co_await for_ever.async_wait(asio::use_awaitable);
}

}  // namespace

TEST_CASE("fake ensemble: a test that hangs ends, and says who waits for what", "[testing]") {
    fake_ensemble ensemble;
    const zkasio::client first = ensemble.client(), second = ensemble.client();
    asio::co_spawn(ensemble.context(), keep_lock(first, "/locks/a"), asio::detached);
    ensemble.run_for(1s);
    bool unwound = false;
    const auto task = [&]() -> asio::awaitable<void> {
        const std::shared_ptr<void> at_end(nullptr, [&](void*) { unwound = true; });
        co_await keep_lock(second, "/locks/a");
    };
    const std::string text = failure_of([&] { ensemble.run(task); });
    INFO(text);
    CHECK(unwound);
    CHECK(has(text, "has not ended: it is 3601.0"));
    CHECK(has(text, "client 1: connected, session 0x"));
    CHECK(has(text, "watches /locks/a/"));
    CHECK(has(text, "what happened last"));
    ensemble.run_for(1s);
    CHECK(ensemble.children("/locks/a").size() == 1);
}

TEST_CASE("fake ensemble: a loop that is never idle is noticed", "[testing]") {
    fake_ensemble ensemble;
    std::function<void()> again = [&] { asio::post(ensemble.context(), again); };
    again();
    const std::string text = failure_of([&] { ensemble.run(ensemble.client().connected()); });
    CHECK(has(text, "the loop is never idle"));
}

TEST_CASE("fake ensemble: mistakes have names", "[testing]") {
    fake_ensemble ensemble;
    const zkasio::client zk = ensemble.client();
    CHECK(failure_of([] { fake_ensemble another; }) ==
          "this thread has a virtual clock already: there can be one at a time");
    asio::io_context other;
    CHECK(has(failure_of([&] { ensemble.client(other.get_executor()); }), "the executor is not of this ensemble"));
    const zkasio::client foreign(other, "127.0.0.1:1");
    CHECK(has(failure_of([&] { ensemble.cut(foreign); }), "the client is not one of this ensemble"));
    CHECK(has(failure_of([&] { ensemble.expire(zk); }), "the client has no session that lives"));
    CHECK(has(failure_of([&] { ensemble.create("a"); }), "fake_ensemble::create a"));
    const auto client_of = [&](const char* servers) {
        return failure_of([&] { ensemble.client(zkasio::client_options(servers)); });
    };
    CHECK(client_of("zk1:99999") ==
          "client options: invalid argument (server \"zk1:99999\": a port is a number from 1 to 65535)");
    CHECK(client_of("") == "client options: invalid argument (server \"\": the host is empty)");
    CHECK(client_of("zk1,,zk2") == "client options: invalid argument (server \"\": the host is empty)");
    CHECK(client_of("zk1:1/app,zk2:2/app") ==
          "client options: invalid argument (server \"zk1:1/app,zk2:2/app\": the chroot stands once, behind the last "
          "server)");
    CHECK(client_of("zk1;zk2") ==
          "client options: invalid argument (server \"zk1;zk2\": servers are separated by ',', not by ';')");
    const auto nested = [&]() -> asio::awaitable<void> {
        ensemble.run_for(1s);
        co_return;
    };
    CHECK(has(failure_of([&] { ensemble.run(nested); }), "while it runs"));
    const auto fails = []() -> asio::awaitable<void> {
        throw std::runtime_error("of the task");
        co_return;
    };
    CHECK(failure_of([&] { ensemble.run(fails); }) == "of the task");
    ensemble.run(zk.connected());  // as before
}

TEST_CASE("waits: by watches, over faults, with a limit", "[testing]") {
    fake_ensemble ensemble;
    const auto options = zkasio::client_options("zk1").session_timeout(10s);
    const zkasio::client zk = ensemble.client(options);
    bool ended = false;
    const auto all = [&]() -> asio::awaitable<void> {
        co_await zkasio::testing::until_exists(zk, "/a/b", 1min);
        co_await zkasio::testing::until_children(zk, "/a", [](const auto& names) { return names.size() == 2; }, 1min);
        co_await zkasio::testing::until_empty(zk, "/a", 1min);
        co_await zkasio::testing::until_gone(zk, "/a", 1min);
        ended = true;
    };
    asio::co_spawn(ensemble.context(), all(), asio::detached);
    ensemble.run_for(1s);
    ensemble.create("/a");
    ensemble.run_for(1s);
    ensemble.create("/a/b");
    ensemble.run_for(1s);
    ensemble.expire(zk);
    ensemble.run_for(1s);
    ensemble.hold_down(zk);
    ensemble.run_for(30s);
    ensemble.create("/a/c");
    ensemble.let_in(zk);
    ensemble.run_for(5s);
    ensemble.remove("/a/b");
    ensemble.cut(zk);
    ensemble.remove("/a/c");
    ensemble.run_for(1s);
    CHECK_FALSE(ended);
    ensemble.remove("/a");
    ensemble.run_for(1s);
    CHECK(ended);
    CHECK(ensemble.watches() == 0);
}

TEST_CASE("waits: what was there instead is in the message", "[testing]") {
    fake_ensemble ensemble;
    const zkasio::client zk = ensemble.client(zkasio::client_options("zk1").session_timeout(10s));
    ensemble.create("/a/x");
    ensemble.create("/a/y");
    const auto before = ensemble.now();
    CHECK(has(failure_of([&] { ensemble.run(zkasio::testing::until_empty(zk, "/a", 5s)); }),
                   "(after 5 s; it has 2 children: x, y)"));
    CHECK(ensemble.now() - before >= 5s);
    CHECK(ensemble.now() - before < 6s);
    CHECK(has(failure_of([&] { ensemble.run(zkasio::testing::until_exists(zk, "/b", 5s)); }), "it does not exist"));
    ensemble.hold_down(zk);
    const std::string text = failure_of([&] { ensemble.run(zkasio::testing::until_gone(zk, "/a", 1min)); });
    INFO(text);
    CHECK(has(text, "(after 60 s; "));
    CHECK(has(text, "not connected"));
    CHECK(ensemble.watches() == 0);
}
