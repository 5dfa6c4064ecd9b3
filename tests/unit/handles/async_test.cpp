// zkasio::async(): any operation, and any completion token of Asio.
#include "unit/handles/task_scope_steps.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/coroutines/async.hpp>
#include <zkasio/coroutines/timeout.hpp>
#include <zkasio/recipe/toolbox.hpp>

#include <asio/bind_executor.hpp>
#include <asio/detached.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/experimental/deferred.hpp>
#include <asio/io_context.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/thread_pool.hpp>

#include <future>
#include <memory>
#include <stdexcept>
#include <string>

namespace async_tests {

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;
using namespace std::chrono_literals;
using asio::experimental::as_tuple;
using asio::experimental::deferred;

namespace {

reply only_node_a(const request& what) {
    if (path_of(what) == "/none") return refusal(zk_errc::no_node);
    reply r;
    r.path = path_of(what);
    r.data = "data of a";
    return r;
}

using loop_executor = asio::io_context::executor_type;
constexpr asio::use_awaitable_t<loop_executor> use_loop_awaitable;

asio::awaitable<void> fails_otherwise() {
    throw std::runtime_error("of the user");
    co_return;
}

}  // namespace

TEST_CASE("async: callbacks with an error code", "[tokens]") {
    rig r;
    r.server.answer = only_node_a;
    int called = 0;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const asio::any_io_executor here = co_await asio::this_coro::executor;
        gate all(here);
        const auto count = [&] {
            if (++called == 5) all.open();
        };
        async(here, zk.get("/a"), [&](std::error_code failed, node_data read) {
            CHECK_FALSE(failed);
            CHECK(read.data == "data of a");
            count();
        });
        async(here, zk.get("/none"), [&, only = std::make_unique<int>()](std::error_code failed, node_data read) {
            CHECK(failed == zk_errc::no_node);
            CHECK(read.data.empty());
            count();
        });
        async(here, zk.remove("/a"), [&](std::error_code failed) {
            CHECK_FALSE(failed);
            count();
        });
        async(zk.remove("/none"), asio::bind_executor(here, [&](std::error_code failed) {
                  CHECK(failed == zk_errc::no_node);
                  count();
              }));
        async(here, asio::awaitable<int>(), [&](std::error_code failed, int) {
            CHECK(failed == errc::invalid_argument);
            count();
        });
        async(here, zk.get("/a"), asio::detached);
        co_await all.wait();
    };
    r.run(body);
    CHECK(called == 5);
}

TEST_CASE("async: use_future has the whole error", "[tokens]") {
    rig r;
    r.server.answer = only_node_a;
    std::string data, text;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const one_shot_event done = toolbox(zk).make_one_shot_event();
        const asio::any_io_executor loop = r.loop.executor();
        const auto outside = std::async(std::launch::async, [&] {
            data = async(loop, zk.get("/a"), asio::use_future).get().data;
            try {
                async(loop, zk.get("/none"), asio::use_future).get();
            } catch (const error& failed) {
                text = failed.what();
            }
            done.fire();
        });
        co_await done.wait();
    };
    r.run(body);
    CHECK(data == "data of a");
    CHECK(text.find("/none") != std::string::npos);
}

// An Asio program whose coroutines know their loop has awaitables of another type.
TEST_CASE("async: coroutines of any executor", "[tokens]") {
    rig r;
    r.server.answer = only_node_a;
    int done = 0;
    auto in_loop = [&](client zk) -> asio::awaitable<void, loop_executor> {
        const node_data read = co_await async(zk.get("/a"), use_loop_awaitable);
        CHECK(read.data == "data of a");
        std::string text;
        try {
            co_await async(zk.get("/none"), use_loop_awaitable);
        } catch (const error& failed) {
            text = failed.what();
        }
        CHECK(text.find("/none") != std::string::npos);
        const auto [code, none] = co_await async(zk.get("/none"), as_tuple(use_loop_awaitable));
        CHECK(code == zk_errc::no_node);
        std::error_code redirected;
        co_await async(zk.remove("/none"), asio::redirect_error(use_loop_awaitable, redirected));
        CHECK(redirected == zk_errc::no_node);
        const node_data again = co_await async(zk.get("/a"), asio::redirect_error(use_loop_awaitable, redirected));
        CHECK_FALSE(redirected);
        CHECK(again.data == "data of a");
        auto later = async(zk.get("/a"), deferred);
        const auto [none_failed, third] = co_await std::move(later)(as_tuple(use_loop_awaitable));
        CHECK_FALSE(none_failed);
        CHECK(third.data == "data of a");
        ++done;
        co_return;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        gate all(r.loop.executor());
        asio::co_spawn(r.loop.context(), in_loop(zk), [&](std::exception_ptr failed) {
            all.open();
            if (failed) std::rethrow_exception(failed);
        });
        co_await all.wait();
    };
    r.run(body);
    CHECK(done == 1);
}

TEST_CASE("async: operations run on another executor, and are cancelled from that of the handler", "[tokens]") {
    rig r;
    r.server.answer = only_node_a;
    asio::thread_pool other(2);
    auto body = [&](client zk) -> asio::awaitable<void> {
        const asio::any_io_executor there = other.get_executor();
        const node_data read = co_await async(there, zk.get("/a"), asio::use_awaitable);
        CHECK(read.data == "data of a");
        const one_shot_event never = toolbox(zk).make_one_shot_event();
        for (const auto type : {asio::cancellation_type::terminal, asio::cancellation_type::partial,
                                asio::cancellation_type::total}) {
            asio::cancellation_signal stop;
            gate ended(r.loop.executor());
            std::error_code how;
            const auto here = r.loop.executor();
            async(there, never.wait(),
                  asio::bind_cancellation_slot(stop.slot(), asio::bind_executor(here, [&](std::error_code failed) {
                                                   how = failed;
                                                   CHECK_FALSE(stop.slot().has_handler());
                                                   ended.open();
                                               })));
            co_await settle();
            CHECK_FALSE(how);
            stop.emit(type);
            co_await ended.wait();
            CHECK(how == condition::cancelled);
            stop.emit(type);  // too late, and for nobody
        }
        co_await expect_code(timeout(1ms, async(there, never.wait(), asio::use_awaitable)), errc::timed_out);
    };
    r.run(body);
    other.join();
}

TEST_CASE("async: what is no error with a code leaves the loop", "[tokens][leaves]") {
    asio::io_context loop;
    bool called = false;
    async(loop.get_executor(), fails_otherwise(), [&](std::error_code) { called = true; });
    CHECK_THROWS_AS(loop.run(), std::runtime_error);
    std::future<void> result = async(loop.get_executor(), fails_otherwise(), asio::use_future);
    loop.restart();
    loop.run();
    CHECK_THROWS_AS(result.get(), std::runtime_error);
    CHECK_FALSE(called);
}

TEST_CASE("async: a cancelled coroutine of two operations ends with the code of a cancellation", "[tokens]") {
    using namespace asio::experimental::awaitable_operators;
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        const one_shot_event one = toolbox(zk).make_one_shot_event(), two = toolbox(zk).make_one_shot_event();
        const auto both = [&]() -> asio::awaitable<void> { co_await (one.wait() || two.wait()); };
        const auto here = r.loop.executor();
        asio::cancellation_signal stop;
        gate ended(here);
        std::error_code how;
        async(here, both(), asio::bind_cancellation_slot(stop.slot(), [&](std::error_code failed) {
                  how = failed;
                  ended.open();
              }));
        co_await settle();
        stop.emit(asio::cancellation_type::terminal);
        co_await ended.wait();
        CHECK(how == condition::cancelled);
    };
    r.run(body);
}

// A loop that is destroyed destroys the handler, which is never called.
TEST_CASE("async: an operation that never ends", "[tokens]") {
    const auto alive = std::make_shared<int>();
    asio::cancellation_signal stop;
    {
        asio::io_context loop;
        auto wait_for_ever = [](std::shared_ptr<int>) -> asio::awaitable<void> {
            asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
            co_await never.async_wait(asio::use_awaitable);
        };
        async(loop.get_executor(), wait_for_ever(alive),
              asio::bind_cancellation_slot(stop.slot(), [alive](std::error_code) { FAIL("called"); }));
        loop.poll();
    }
    CHECK(alive.use_count() == 1);
}

}  // namespace async_tests
