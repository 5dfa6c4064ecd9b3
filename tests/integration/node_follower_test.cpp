#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/node_follower.hpp>

#include <optional>
#include <string>
#include <utility>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("node_follower: a listener that asks again and stops it") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "node-follower");
        const node_follower follower(zk, dir + "/n", node_read::data);
        int told = 0;
        std::string last;
        bool ended = false;
        std::function<void(node_report)> listener = [&](node_report report) {
            ended = report.ended;
            if (ended) return;
            ++told;
            last = report.mark.code ? std::string("-") : report.answer.data;
            follower.tell_next(report.mark, listener);
            if (last == "stop") follower.stop();
        };
        follower.tell_next(std::nullopt, listener);
        for (int i = 0; i < 50; ++i) co_await zk.create_or_set(dir + "/n", std::to_string(i));
        const auto heard = [&]() -> asio::awaitable<bool> { co_return last == "49"; };
        co_await eventually(heard);
        CHECK(told <= 51);
        CHECK_FALSE(ended);
        co_await zk.set(dir + "/n", "stop");
        const auto is_over = [&]() -> asio::awaitable<bool> { co_return ended; };
        co_await eventually(is_over);
        co_await zk.idle();
        CHECK(watched_below(dir).empty());
    };
    with_client(body);
}

TEST_CASE("node_follower: what is asked last is told and what is wrong is refused") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "node-follower-refused");
        CHECK_THROWS_AS(node_follower(zk, dir, node_read::stat), error);
        CHECK_THROWS_AS(node_follower(zk, "no/slash", node_read::data), error);
        node_follower follower(zk, dir, node_read::children);
        bool first = false, second = false;
        follower.tell_next(std::nullopt, [&](const node_report&) { first = true; });
        follower.tell_next(std::nullopt, [&](const node_report&) { second = true; });
        const auto heard = [&]() -> asio::awaitable<bool> { co_return second; };
        co_await eventually(heard);
        CHECK_FALSE(first);
        const node_follower other = std::move(follower);
        std::error_code code = co_await code_of(follower.next(std::nullopt));
        CHECK(code == errc::invalid_argument);
        code = co_await code_of(follower.close());
        CHECK(code == errc::invalid_argument);
        follower.stop();
        follower = node_follower(zk, dir, node_read::data);
        const node_report report = co_await follower.next(std::nullopt);
        CHECK_FALSE(report.mark.code);
        co_await follower.close();
        co_await other.close();
        CHECK(watched_below(dir).empty());
    };
    with_client(body);
}
