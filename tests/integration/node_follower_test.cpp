#include "support/lock_checks.hpp"
#include "support/test_client.hpp"

#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/recipe/node_follower.hpp>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/error.hpp>
#include <asio/io_context.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

using namespace zkasio;
using namespace zkasio::test;

namespace {

asio::awaitable<void> await_report(asio::awaitable<node_report> next) { co_await std::move(next); }

}  // namespace

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

TEST_CASE("node_follower: a next() that was cancelled reads no more") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "node-follower-cancelled");
        const node_follower follower(zk, dir, node_read::data);
        const node_report first = co_await follower.next(std::nullopt);
        running waiting(co_await asio::this_coro::executor, await_report(follower.next(first.mark)));
        co_await turns(2);
        CHECK_FALSE(watched_below(dir).empty());
        waiting.cancel();
        const std::error_code code = co_await waiting.code();
        CHECK(code == asio::error::operation_aborted);
        co_await zk.set(dir, "1");  // its watch fires
        co_await turns(5);
        co_await zk.sync(dir);
        CHECK(watched_below(dir).empty());  // it was not read again, which would watch it
        const node_report second = co_await follower.next(first.mark);
        CHECK(second.answer.data == "1");
        co_await follower.close();
        co_await follower.close();
        CHECK(watched_below(dir).empty());
    };
    with_client(body);
}

TEST_CASE("node_follower: who awaits next() is told when another one asks") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "node-follower-replaced");
        const node_follower follower(zk, dir, node_read::data);
        const auto executor = co_await asio::this_coro::executor;
        const node_report first = co_await follower.next(std::nullopt);
        const running one(executor, await_report(follower.next(first.mark)));
        co_await turns(2);
        const running two(executor, await_report(follower.next(first.mark)));
        std::error_code code = co_await one.code();
        CHECK(code == asio::error::operation_aborted);
        CHECK_FALSE(two.ended());
        std::optional<node_mark> told;
        follower.tell_next(first.mark, [&](const node_report& report) { told = report.mark; });
        code = co_await two.code();
        CHECK(code == asio::error::operation_aborted);
        co_await zk.set(dir, "1");
        const auto heard = [&]() -> asio::awaitable<bool> { co_return told.has_value(); };
        co_await eventually(heard);
        const std::string late = co_await message_of(timeout(0s, follower.next(told)));
        CHECK(late == "next " + dir + ": " + make_error_code(errc::timed_out).message());
    };
    with_client(body);
}

TEST_CASE("node_follower: a listener that asks again when it has ended") {
    auto body = [](const test_client& zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "node-follower-ended");
        const node_follower follower(zk, dir, node_read::data);
        int ends = 0;
        std::function<void(node_report)> listener = [&](const node_report& report) {
            if (report.ended && ++ends < 200000) follower.tell_next(report.mark, listener);
        };
        co_await follower.next(std::nullopt);
        follower.tell_next(std::nullopt, listener);
        co_await follower.close();
        const auto all = [&]() -> asio::awaitable<bool> { co_return ends == 200000; };
        co_await eventually(all, 120s);
        const node_report last = co_await follower.next(std::nullopt);
        CHECK(last.ended);
        CHECK(last.mark.code == errc::client_closed);
    };
    with_client_for(180s, options(), body);
}

TEST_CASE("node_follower: the event loop is destroyed while somebody waits", "[real-loop]") {
    auto io = std::make_unique<asio::io_context>();
    const auto told = std::make_shared<bool>(false);
    const auto follow = [](client zk, std::shared_ptr<bool> once) -> asio::awaitable<void> {
        const node_follower follower(zk, "/", node_read::data);
        const node_report first = co_await follower.next(std::nullopt);
        *once = true;
        co_await follower.next(first.mark);
    };
    asio::co_spawn(*io, follow(client(*io, options()), told), asio::detached);
    while (!*told && io->run_one() > 0) {
    }
    for (int i = 0; i < 5; ++i) io->poll_one();
    io.reset();
    CHECK(*told);
}
