// close() while something reads, at each moment of the read.

#include "support/catch.hpp"

#include <zkasio/cache/children_cache.hpp>
#include <zkasio/cache/node_cache.hpp>
#include <zkasio/cache/streams.hpp>
#include <zkasio/cache/tree_cache.hpp>
#include <zkasio/membership/persistent_node.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/co_spawn.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <system_error>

using namespace zkasio;
using namespace std::chrono_literals;
using zkasio::testing::fake_ensemble;

namespace {

asio::awaitable<void> pause(std::chrono::milliseconds time) {
    asio::steady_timer timer(co_await asio::this_coro::executor, time);
    co_await timer.async_wait(asio::use_awaitable);
}

template <class Thing>
void close_at_each_moment(const std::string& path, std::function<Thing(const client&, const std::string&)> make) {
    for (std::chrono::milliseconds when = 0ms; when <= 60ms; when += 5ms) {
        CAPTURE(path, when.count());
        fake_ensemble ensemble;
        ensemble.step_time(10ms);
        ensemble.create("/t/a/x", "3");
        ensemble.create("/t/b", "2");
        const client zk = ensemble.client();
        std::optional<Thing> thing;
        auto body = [&]() -> asio::awaitable<void> {
            co_await zk.connected();
            thing.emplace(make(zk, path));
            co_await pause(when);
            const close_result how = co_await zk.close();
            CHECK(how == close_result::confirmed);
        };
        ensemble.run(body);
        thing.reset();
        CHECK(ensemble.watches() == 0);
        CHECK(ensemble.sessions() == 0);
    }
}

}  // namespace

TEST_CASE("close: ends at each moment of what a cache, a stream or a follower reads", "[testing][close]") {
    for (const char* path : {"/t", "/missing"}) {
        close_at_each_moment<tree_cache>(path,
                                         [](const client& zk, const std::string& at) { return tree_cache(zk, at); });
        close_at_each_moment<node_cache>(path,
                                         [](const client& zk, const std::string& at) { return node_cache(zk, at); });
        close_at_each_moment<children_cache>(
            path, [](const client& zk, const std::string& at) { return children_cache(zk, at); });
        close_at_each_moment<children_stream>(
            path, [](const client& zk, const std::string& at) { return watch_children(zk, at); });
        close_at_each_moment<value_stream>(path,
                                           [](const client& zk, const std::string& at) { return watch_value(zk, at); });
    }
}

TEST_CASE("close: a loop around state_after() hears of the end once and lets the client close", "[testing][close]") {
    fake_ensemble ensemble;
    ensemble.create("/d");
    const client zk = ensemble.client();
    const persistent_node node(zk, "/d/x");
    std::string heard;
    std::error_code end;
    auto follow = [&]() -> asio::awaitable<void> {
        try {
            for (auto state = node.state();;) {
                state = co_await node.state_after(state);
                heard += std::string(to_string(state)) + ' ';
            }
        } catch (const error& e) {
            end = e.code();
        }
    };
    asio::co_spawn(ensemble.context(), follow, [](const std::exception_ptr& e) { CHECK_FALSE(e); });
    SECTION("closed") {
        ensemble.run(node.created());
        ensemble.run(zk.close());
        CHECK(end == errc::client_closed);
    }
    SECTION("refused for good") {
        ensemble.run(node.created());
        ensemble.refuse("/d/x", zk_errc::no_auth);
        ensemble.remove("/d/x");
        ensemble.run_for(1s);
        CHECK(end == zk_errc::no_auth);
        ensemble.run(zk.close());
    }
    CHECK(heard.find("ended ") == heard.rfind("ended "));
}
