// Which types of cancellation end which operation: what the table in docs/cancellation.md says.
#include "unit/handles/task_scope_steps.hpp"
#include "unit/support/fake_tree.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/locks/mutex.hpp>

#include <functional>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;
using asio::cancellation_type;

namespace {

// What a coroutine lets through: co_spawn's default, or what it has asked for by reset_cancellation_state().
enum class lets_through {
    co_spawn_default,
    partial,
    total
};

using operation_maker = std::function<asio::awaitable<void>()>;

template <class T>
asio::awaitable<void> without_result(asio::awaitable<T> operation) {
    (void)co_await std::move(operation);
}

asio::awaitable<void> letting_through(lets_through which, asio::awaitable<void> operation) {
    if (which == lets_through::partial)
        co_await asio::this_coro::reset_cancellation_state(asio::enable_partial_cancellation());
    if (which == lets_through::total)
        co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    co_await std::move(operation);
}

bool expected_to_end(lets_through which, cancellation_type how) {
    if (how == cancellation_type::terminal) return true;
    if (which == lets_through::partial) return how == cancellation_type::partial;
    return which == lets_through::total;
}

// Cancels an operation that would never end by itself, by each type: which of them end it depends on the coroutine
// only.
// @param under_way completes when the operation waits. @param ignored does not end it, whatever the coroutine lets
// through.
asio::awaitable<void> cancel_by_each_type(asio::any_io_executor loop, operation_maker make, operation_maker under_way,
                                          cancellation_type ignored = cancellation_type::none) {
    for (const auto which : {lets_through::co_spawn_default, lets_through::partial, lets_through::total}) {
        for (const auto how : {cancellation_type::terminal, cancellation_type::partial, cancellation_type::total}) {
            running task(loop, letting_through(which, make()));
            co_await under_way();
            co_await settle();
            REQUIRE_FALSE(task.ended());
            task.cancel(how);
            co_await settle();
            INFO("lets through " << static_cast<int>(which) << ", type " << static_cast<int>(how));
            CHECK(task.ended() == (how != ignored && expected_to_end(which, how)));
            if (!task.ended()) task.cancel();
            const std::error_code code = co_await task.code();
            CHECK(code == asio::error::operation_aborted);
        }
    }
}

// Of requests that the server never answers.
asio::awaitable<void> cancel_requests(rig& r, operation_maker make,
                                      cancellation_type ignored = cancellation_type::none) {
    std::size_t sent = r.server.requests.size();
    operation_maker under_way = [&]() -> asio::awaitable<void> {
        ++sent;
        co_await r.server.until([&] { return r.server.requests.size() >= sent; });
    };
    co_await cancel_by_each_type(r.loop.executor(), std::move(make), std::move(under_way), ignored);
}

}  // namespace

TEST_CASE("tokens: a read is ended by every type of cancellation that gets through, a write that was sent not by a total one", "[tokens]") {
    rig r;
    r.server.answer = [](const request&) { return std::nullopt; };
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        operation_maker read = [&] { return without_result(zk.get("/a")); };
        operation_maker write = [&] { return without_result(zk.set("/a", "x")); };
        co_await cancel_requests(r, std::move(read));
        co_await cancel_requests(r, std::move(write), cancellation_type::total);
        r.server.reply_to_all();
    };
    r.run(body);
}

TEST_CASE("tokens: the wait for a watch is ended by every type of cancellation that gets through", "[tokens]") {
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const watched<node_data> seen = co_await zk.get_and_watch("/a");
        operation_maker change = [&] { return without_result(seen.changes.changed()); };
        operation_maker at_once = [] { return nothing(); };
        co_await cancel_by_each_type(r.loop.executor(), std::move(change), std::move(at_once));
    };
    r.run(body);
}

TEST_CASE("tokens: an acquire that waits is ended by every type of cancellation that gets through", "[tokens]") {
    rig r;
    fake_tree tree;
    r.server.answer = [&](const request& what) { return tree(what); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex lock(zk, "/lock");
        const lock_guard held = co_await lock.acquire();
        operation_maker acquire = [&] { return without_result(lock.acquire()); };
        operation_maker queued = [&]() -> asio::awaitable<void> {
            co_await r.server.until([&] { return tree.size() == 2; });
        };
        operation_maker acquire_in_time = [&] { return without_result(lock.try_acquire_for(1h)); };
        co_await cancel_by_each_type(r.loop.executor(), std::move(acquire), queued);
        co_await cancel_by_each_type(r.loop.executor(), std::move(acquire_in_time), queued);
        co_await r.server.until([&] { return tree.size() == 1; });
        CHECK(held.held());
    };
    r.run(body);
}

TEST_CASE("tokens: the body under a lock receives every type of cancellation that gets through", "[tokens]") {
    rig r;
    fake_tree tree;
    r.server.answer = [&](const request& what) { return tree(what); };
    auto body = [&](client zk) -> asio::awaitable<void> {
        const mutex lock(zk, "/lock");
        bool begun = false;
        cancellation_type seen{};
        auto work = [&](lock_guard&) -> asio::awaitable<void> {
            begun = true;
            co_await until_cancelled_by(seen);
        };
        operation_maker locked = [&] {
            begun = false;
            return without_result(lock.with_lock(work));
        };
        operation_maker working = [&]() -> asio::awaitable<void> { co_await r.server.until([&] { return begun; }); };
        co_await cancel_by_each_type(r.loop.executor(), std::move(locked), std::move(working));
        CHECK(seen == cancellation_type::total);  // the last that was sent: the body is told which it was
        co_await r.server.until([&] { return tree.size() == 0; });
    };
    r.run(body);
}

TEST_CASE("tokens: connected() is ended by every type of cancellation that gets through", "[tokens]") {
    rig r;
    r.server.silent = true;
    auto body = [&](client zk) -> asio::awaitable<void> {
        operation_maker connected = [&] { return without_result(zk.connected()); };
        operation_maker current = [&] { return without_result(zk.current_session()); };
        operation_maker at_once = [] { return nothing(); };
        co_await cancel_by_each_type(r.loop.executor(), std::move(connected), at_once);
        co_await cancel_by_each_type(r.loop.executor(), std::move(current), at_once);
    };
    r.run(body);
}

TEST_CASE("tokens: the wait for close() is ended by every type of cancellation that gets through", "[tokens]") {
    rig r(rig::quick().close_timeout(1h));
    r.server.says_goodbye = false;
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        operation_maker close_it = [&] { return without_result(zk.close()); };
        operation_maker at_once = [] { return nothing(); };
        co_await cancel_by_each_type(r.loop.executor(), std::move(close_it), std::move(at_once));
        CHECK(zk.state() != session_state::closed);  // only the wait was ended
        r.server.drop();
        co_await zk.close();
        CHECK(zk.state() == session_state::closed);
    };
    r.run(body);
}
