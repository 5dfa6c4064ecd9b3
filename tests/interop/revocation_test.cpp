#include "interop/peer.hpp"
#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <zkasio/locks/mutex.hpp>

using namespace zkasio;
using namespace zkasio::test;

TEST_CASE("Curator asks for our lock back: we are told, and still hold it") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-revoke-ours");
        peer curator(co_await asio::this_coro::executor, "curator");
        co_await curator.ready();
        const mutex lock(zk, dir);
        lock_guard guard = co_await lock.acquire();
        auto listen = [&]() -> asio::awaitable<void> { co_await guard.revoke_requested(); };
        running told(co_await asio::this_coro::executor, listen());
        curator.send("waiter acquire mutex " + dir);
        co_await until_queued(zk, dir, 2);
        CHECK_FALSE(told.ended());
        curator.send("asks revoke " + guard.path());
        co_await curator.expect("asks", "revoking");
        const std::exception_ptr failed = co_await told.end();
        CHECK_FALSE(failed);
        CHECK(guard.held());
        CHECK_FALSE(curator.answered("waiter"));
        co_await guard.release();
        co_await curator.acquired("waiter");
        co_await curator.exit();
    };
    with_client(body);
}

TEST_CASE("Curator asks for our lock back: with_lock ends its body, and Curator gets the lock") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-revoke-body");
        const auto executor = co_await asio::this_coro::executor;
        peer curator(executor, "curator");
        co_await curator.ready();
        const mutex lock(zk, dir);
        std::string node;
        auto endless = [&](lock_guard& guard) -> asio::awaitable<void> {
            node = guard.path();
            asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
            co_await never.async_wait(asio::use_awaitable);
        };
        running holding(executor, lock.with_lock(endless, revocation_policy::cancel_after(0ms)));
        auto inside = [&]() -> asio::awaitable<bool> { co_return !node.empty(); };
        co_await eventually(inside);
        curator.send("waiter acquire mutex " + dir);
        co_await until_queued(zk, dir, 2);
        curator.send("asks revoke " + node);
        const std::error_code why = co_await holding.code();
        CHECK(why == errc::revoked);
        co_await curator.acquired("waiter");
        co_await curator.exit();
    };
    with_client(body);
}

TEST_CASE("we ask for Curator's lock back: it is told, and releases") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-revoke-theirs");
        const auto executor = co_await asio::this_coro::executor;
        peer curator(executor, "curator");
        co_await curator.ready();
        curator.send("a acquire revocable " + dir);
        const std::string node = co_await curator.acquired("a");
        const mutex lock(zk, dir);
        auto wait = [&]() -> asio::awaitable<void> { co_await lock.acquire(); };
        running waiting(executor, wait());
        co_await until_queued(zk, dir, 2);
        co_await revoke(zk, node);
        co_await curator.expect("a", "revoke-requested");
        CHECK_FALSE(waiting.ended());
        curator.send("a release");
        co_await curator.expect("a", "released");
        const std::exception_ptr failed = co_await waiting.end();
        CHECK_FALSE(failed);
        co_await curator.exit();
    };
    with_client(body);
}
