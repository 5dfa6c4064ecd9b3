#include "interop/peer.hpp"
#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <zkasio/election/leader_election.hpp>
#include <zkasio/locks/mutex.hpp>

using namespace zkasio;
using namespace zkasio::test;

namespace {

leader_election election_named(client zk, std::string path, name_scheme names) {
    leader_election_options options;
    options.id("ours").names(std::move(names));
    return {std::move(zk), std::move(path), std::move(options)};
}

// Curator's waiter sets its watch on the leader's node some time after it has joined the queue: long before the last.
asio::awaitable<void> proclaim_often(const leadership& leader) {
    asio::steady_timer pause(co_await asio::this_coro::executor);
    for (int i = 0; i < 50; ++i) {
        co_await leader.proclaim("proclaimed " + std::to_string(i));
        pause.expires_after(5ms);
        co_await pause.async_wait(asio::use_awaitable);
    }
}

// Curator's LeaderLatch acts on the removal of the node in front of it and on nothing else: whatever writes into that
// node strands it.
asio::awaitable<void> lead_in_front_of(client zk, std::string name, std::string kind, name_scheme names) {
    const std::string dir = co_await fresh_directory(zk, name);
    const auto executor = co_await asio::this_coro::executor;
    const test_client other(executor, options());
    peer curator(executor, "curator");
    co_await curator.ready();
    const leader_election election = election_named(zk, dir, names);
    leadership leader = co_await election.campaign();
    curator.send("waiter acquire " + kind + " " + dir);
    co_await until_queued(zk, dir, 2);
    co_await proclaim_often(leader);
    const leader_observer observer = election_named(other, dir, names).observe();
    const leader_view seen = co_await observer.next();
    CHECK(seen.leader->data == "proclaimed 49");
    curator.send("see candidates " + kind + " " + dir);
    const std::string candidates = co_await curator.expect("see");
    CHECK(candidates == "candidates ours curator-peer");

    co_await revoke(other, leader.path());
    co_await leader.guard().revoke_requested();
    co_await leader.proclaim("going");
    CHECK(leader.held());
    CHECK_FALSE(curator.answered("waiter"));
    co_await leader.resign();
    co_await curator.acquired("waiter");
    co_await curator.exit();
    co_await other.close();
}

}  // namespace

TEST_CASE("a LeaderLatch that waits behind our leader leads when that was asked to resign") {
    auto body = [](client zk) {
        return lead_in_front_of(zk, "interop-revoke-latch", "latch", name_scheme::curator_latch());
    };
    with_client(body);
}

TEST_CASE("a LeaderSelector that waits behind our leader leads when that was asked to resign") {
    auto body = [](client zk) {
        return lead_in_front_of(zk, "interop-revoke-selector", "selector", name_scheme::curator());
    };
    with_client(body);
}

TEST_CASE("a LeaderLatch that we ask to resign does not listen and the one behind it is not stranded") {
    auto body = [](client zk) -> asio::awaitable<void> {
        const std::string dir = co_await fresh_directory(zk, "interop-revoke-theirs-latch");
        const auto executor = co_await asio::this_coro::executor;
        peer curator(executor, "curator");
        co_await curator.ready();
        curator.send("first acquire latch " + dir);
        const std::string node = co_await curator.acquired("first");
        curator.send("second acquire latch " + dir);
        co_await until_queued(zk, dir, 2);
        asio::steady_timer pause(executor);
        for (int i = 0; i < 50; ++i) {
            co_await revoke(zk, node);
            pause.expires_after(5ms);
            co_await pause.async_wait(asio::use_awaitable);
        }
        CHECK_FALSE(curator.answered("second"));
        curator.send("first release");
        co_await curator.expect("first", "released");
        co_await curator.acquired("second");
        co_await curator.exit();
    };
    with_client(body);
}

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
        auto wait = [&]() -> asio::awaitable<void> { (void)co_await lock.acquire(); };
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
