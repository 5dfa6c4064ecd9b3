// What is cancelled within a() || b() and a() && b(), where Asio throws multiple_exceptions, counts as cancelled.
#include "unit/handles/task_scope_steps.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/coroutines/result.hpp>
#include <zkasio/coroutines/timeout.hpp>

#include <asio/experimental/awaitable_operators.hpp>

using namespace zkasio;
using namespace zkasio::test;

namespace {

asio::awaitable<void> either_for_ever() {
    using namespace asio::experimental::awaitable_operators;
    co_await (forever() || forever());
}

asio::awaitable<void> both_for_ever() {
    using namespace asio::experimental::awaitable_operators;
    co_await (forever() && forever());
}

asio::awaitable<void> one_of_these(bool either) {
    if (either) co_return co_await either_for_ever();
    co_await both_for_ever();
}

asio::awaitable<void> no_and_no() {
    using namespace asio::experimental::awaitable_operators;
    co_await (fail_with("mine") || fail_with("yours"));
}

}  // namespace

TEST_CASE("combinators: a limit that ends both sides is told as such", "[timeout]") {
    test_loop loop;
    const bool either = GENERATE(true, false);
    auto steps = [&]() -> asio::awaitable<void> {
        const std::error_code code = co_await code_of(timeout(1ms, one_of_these(either)));
        CHECK(code == errc::timed_out);
        const result<void> value = co_await as_result(timeout(1ms, one_of_these(either)));
        CHECK(value.error().code() == errc::timed_out);
        CHECK(value.error().outcome_unknown());  // one of the two exceptions is not seen
        auto body = [&] { return one_of_these(either); };
        const bool in_time = co_await run_with_deadline(boot_clock::now() + 1ms, body);
        CHECK_FALSE(in_time);
    };
    loop.run(steps());
}

TEST_CASE("combinators: a scope that cancels both sides completes", "[task_scope]") {
    test_loop loop;
    const bool either = GENERATE(true, false);
    auto steps = [&]() -> asio::awaitable<void> {
        auto body = [&](task_scope& tasks) -> asio::awaitable<void> {
            tasks.spawn(one_of_these(either));
            co_await settle();
            tasks.cancel();
        };
        const std::error_code code = co_await code_of(with_task_scope(body));
        CHECK_FALSE(code);
    };
    loop.run(steps());
}

TEST_CASE("combinators: what fails by itself on both sides is told as Asio does", "[timeout]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        bool both = false;
        try {
            co_await timeout(10s, no_and_no());
        } catch (const asio::multiple_exceptions&) {
            both = true;
        }
        CHECK(both);
    };
    loop.run(steps());
}
