#include "unit/handles/task_scope_steps.hpp"
#include "unit/support/error_of.hpp"

#include <zkasio/coroutines/result.hpp>

#include <asio/detached.hpp>
#include <asio/use_future.hpp>

#include <future>
#include <memory>
#include <string>
#include <type_traits>

using namespace zkasio;
using namespace zkasio::test;

namespace {

asio::awaitable<int> seven() {
    co_await settle();
    co_return 7;
}

asio::awaitable<std::unique_ptr<int>> move_only_seven() {
    auto seven = std::make_unique<int>(7);
    co_return seven;
}

asio::awaitable<int> refused_create() {
    co_await settle();
    throw error(zk_errc::no_auth, "create", "/a", "why", true);
}

asio::awaitable<void> refused() { co_await refused_create(); }

asio::awaitable<void> lost_with_body() {
    throw_with_body_failure(error(errc::lock_lost, "with_lock", "/a"),
                            std::make_exception_ptr(std::runtime_error("of the body")));
    co_return;
}

std::string nested_in(const std::exception& e) {
    try {
        std::rethrow_if_nested(e);
    } catch (const std::exception& inner) {
        return inner.what();
    }
    return {};
}

// Cannot be assigned, nor made from nothing.
struct stubborn {
    explicit stubborn(int n) : number(n) {}
    const int number;
};

asio::awaitable<stubborn> make_stubborn() { co_return stubborn(3); }

}  // namespace

TEST_CASE("result: a value", "[result]") {
    result<std::string> text(std::string("abc"));
    CHECK(text);
    CHECK(text.has_value());
    CHECK(*text == "abc");
    CHECK(text->size() == 3);
    CHECK(text.value() == "abc");
    *text += "d";
    CHECK(std::as_const(text).value() == "abcd");
    CHECK(*std::as_const(text) == "abcd");
    CHECK(std::as_const(text)->size() == 4);
    const result<std::string> copy = text;
    const std::string out = *std::move(text);
    CHECK(out == "abcd");
    CHECK(*copy == "abcd");

    result<std::unique_ptr<int>> pointer(std::make_unique<int>(3));
    const std::unique_ptr<int> moved_out = std::move(pointer).value();
    CHECK(*moved_out == 3);
    const result<void> done(std::in_place);
    CHECK(done);
    done.value();
    *done;
    CHECK(error_of([&] { (void)copy.error(); })->what() ==
          std::string("result: invalid argument (error() of a result that has a value)"));
    CHECK(code_thrown_by([&] { (void)done.error(); }) == errc::invalid_argument);
    STATIC_REQUIRE(std::is_same_v<result<int>::value_type, int>);
}

TEST_CASE("result: an error is thrown by whatever asks for the value", "[result]") {
    const result<std::string> failed(error(zk_errc::no_node, "get", "/a", {}, true));
    CHECK_FALSE(failed);
    CHECK_FALSE(failed.has_value());
    CHECK(failed.error().code() == zk_errc::no_node);
    CHECK(failed.error().operation() == "get");
    CHECK(failed.error().path() == "/a");
    CHECK(failed.error().outcome_unknown());
    CHECK(failed.error().what() == std::string("get /a: no such node; it may or may not have been applied"));
    CHECK(code_thrown_by([&] { (void)failed.value(); }) == zk_errc::no_node);
    CHECK(code_thrown_by([&] { (void)*failed; }) == zk_errc::no_node);
    CHECK(code_thrown_by([&] { (void)failed->size(); }) == zk_errc::no_node);
    const result<void> none(error(errc::lock_lost, "run"));
    CHECK_FALSE(none);
    CHECK(code_thrown_by([&] { none.value(); }) == errc::lock_lost);
    CHECK(code_thrown_by([&] { *none; }) == errc::lock_lost);
}

TEST_CASE("result: an empty one is an error", "[result]") {
    const result<int> number;
    const result<void> none;
    CHECK_FALSE(number);
    CHECK_FALSE(none);
    CHECK(number.error().code() == errc::invalid_argument);
    CHECK(none.error().what() == std::string("result: invalid argument (an empty result has no value)"));
    CHECK(code_thrown_by([&] { (void)*number; }) == errc::invalid_argument);
    result<int> later;
    later = result<int>(5);
    CHECK(*later == 5);
}

TEST_CASE("as_result: values and errors", "[result]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        const result<int> number = co_await as_result(seven());
        CHECK(*number == 7);
        result<std::unique_ptr<int>> pointer = co_await as_result(move_only_seven());
        CHECK(**pointer == 7);
        const result<void> done = co_await as_result(settle());
        CHECK(done);
        const result<stubborn> odd = co_await as_result(make_stubborn());
        CHECK(odd->number == 3);

        const result<int> failed = co_await as_result(refused_create());
        REQUIRE_FALSE(failed);
        CHECK(failed.error().code() == zk_errc::no_auth);
        CHECK(failed.error().path() == "/a");
        CHECK(failed.error().outcome_unknown());
        const result<void> none = co_await as_result(refused());
        CHECK(none.error().what() ==
              std::string("create /a: no permission (why); it may or may not have been applied"));
        auto gone = seven();
        const auto taken = std::move(gone);
        const result<int> empty = co_await as_result(std::move(gone));
        CHECK(empty.error().code() == errc::invalid_argument);
    };
    loop.run(steps());
}

TEST_CASE("as_result: what is no error of zkasio stays an exception", "[result]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        co_await expect_message(as_result(fail_with("mine")), "mine");
        auto refused_by_a_peer = []() -> asio::awaitable<void> {
            throw std::system_error(asio::error::connection_refused);
            co_return;
        };
        co_await expect_code(as_result(refused_by_a_peer()), asio::error::connection_refused);
    };
    loop.run(steps());
}

TEST_CASE("as_result: what is nested in an error is nested in what value() throws", "[result]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        const result<void> lost = co_await as_result(lost_with_body());
        CHECK(lost.error().code() == errc::lock_lost);
        std::string nested;
        try {
            lost.value();
        } catch (const error& e) {
            nested = nested_in(e);
        }
        CHECK(nested == "of the body");
    };
    loop.run(steps());
}

TEST_CASE("as_result: a cancellation is a value whoever has reported it", "[result]") {
    test_loop loop;
    auto steps = [&]() -> asio::awaitable<void> {
        for (const bool by_asio : {true, false}) {
            result<void> ended;
            std::error_code next;
            auto ours = []() -> asio::awaitable<void> {
                bool cancelled = false;
                try {
                    co_await forever();
                } catch (const std::system_error&) {
                    cancelled = true;
                }
                if (cancelled) throw error(asio::error::operation_aborted, "set", "/a", {}, true);
            };
            auto either = [&]() -> asio::awaitable<void> {
                if (by_asio) return forever();
                return ours();
            };
            auto task = [&]() -> asio::awaitable<void> {
                ended = co_await as_result(either());
                next = co_await code_of(settle());
            };
            running cancelled(loop.executor(), task());
            co_await settle();
            cancelled.cancel();
            const std::error_code code = co_await cancelled.code();
            CHECK(ended.error().code() == condition::cancelled);
            CHECK(ended.error().outcome_unknown() == !by_asio);
            CHECK(ended.error().what() == std::string(by_asio
                                                          ? "operation: cancelled"
                                                          : "set /a: cancelled; it may or may not have been applied"));
            CHECK(code == condition::cancelled);  // the co_await of code_of()
        }
    };
    loop.run(steps());
}

TEST_CASE("as_result: awaited by futures and callbacks and by nobody", "[result][leaves]") {
    test_loop loop;
    auto good = asio::co_spawn(loop.context(), as_result(seven()), asio::use_future);
    auto bad = asio::co_spawn(loop.context(), as_result(refused()), asio::use_future);
    auto thrown = asio::co_spawn(loop.context(), as_result(fail_with("mine")), asio::use_future);
    std::string called_back;
    asio::co_spawn(loop.context(), as_result(refused_create()),
                   [&](std::exception_ptr, result<int> r) { called_back = r.error().operation(); });
    asio::co_spawn(loop.context(), as_result(seven()), asio::detached);
    loop.run();
    CHECK(*good.get() == 7);
    CHECK(bad.get().error().code() == zk_errc::no_auth);
    CHECK_THROWS_AS(thrown.get(), std::runtime_error);
    CHECK(called_back == "create");
}
