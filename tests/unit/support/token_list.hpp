#pragma once

#include "support/test_client.hpp"

#include <zkasio/error.hpp>

#include <asio/detached.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/redirect_error.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_future.hpp>

#include <exception>
#include <functional>
#include <future>
#include <set>
#include <string>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

namespace zkasio::test {

template <class T>
asio::awaitable<T> refused_operation() {
    throw error(zk_errc::no_auth, "get", "/a");
    co_return T();  // asio::co_spawn makes such a one, too, when the operation has failed
}
template <>
inline asio::awaitable<void> refused_operation<void>() {
    throw error(zk_errc::no_auth, "get", "/a");
    co_return;
}

template <class T, class Token>
auto spawn_on(asio::any_io_executor executor, Token&& token) {
    return asio::co_spawn(executor, refused_operation<T>(), std::forward<Token>(token));
}

inline std::error_code code_in(std::exception_ptr e) {
    try {
        std::rethrow_exception(e);
    } catch (const error& failed) {
        return failed.code();
    }
}

// An operation that fails, with each token: how often the failure has arrived. The result type is all that matters to
// Asio.
template <class T>
asio::awaitable<int> failures_by_token(asio::any_io_executor loop, asio::any_io_executor other) {
    int failed = 0;
    const auto count = [&failed](std::exception_ptr e) { failed += code_in(e) == zk_errc::no_auth; };
    spawn_on<T>(loop, asio::detached);
    auto future = spawn_on<T>(loop, asio::use_future);
    if constexpr (std::is_void_v<T>) {
        spawn_on<T>(loop, [count](std::exception_ptr e) { count(e); });
        const auto result = co_await spawn_on<T>(loop, asio::experimental::as_tuple(asio::use_awaitable));
        count(std::get<0>(result));
    } else {
        spawn_on<T>(loop, [count](std::exception_ptr e, T) { count(e); });
        const auto result = co_await spawn_on<T>(loop, asio::experimental::as_tuple(asio::use_awaitable));
        count(std::get<0>(result));
    }
    try {
        (void)co_await spawn_on<T>(other, asio::use_awaitable);
    } catch (...) {
        count(std::current_exception());
    }
    // The error is an exception, not a code: asio::redirect_error has nothing to redirect.
    std::error_code redirected;
    try {
        (void)co_await spawn_on<T>(loop, asio::redirect_error(asio::use_awaitable, redirected));
    } catch (...) {
        if (!redirected) count(std::current_exception());
    }
    try {
        (void)future.get();  // what was spawned before it has ended by now
    } catch (...) {
        count(std::current_exception());
    }
    co_return failed;
}

// The same with one token. It is the result type that Asio has to make and to move, whatever the token, and six tokens
// for each type take minutes to compile.
template <class T>
asio::awaitable<int> failures_with_a_token(asio::any_io_executor loop, asio::any_io_executor) {
    const auto result = co_await spawn_on<T>(loop, asio::experimental::as_tuple(asio::use_awaitable));
    co_return code_in(std::get<0>(result)) == zk_errc::no_auth ? 1 : 0;
}

using token_check = asio::awaitable<int> (*)(asio::any_io_executor, asio::any_io_executor);

/// The result types of all operations, by what returns them.
class token_list {
public:
    /// @param call(handle) is never called: only its type counts.
    template <class Handle, class Call>
    void compiles(std::string header_and_name, Call) {
        using result = typename std::invoke_result_t<Call, Handle&>::value_type;
        checks_.insert(&failures_with_a_token<result>);
        names_.insert(std::move(header_and_name));
    }
    const std::set<token_check>& checks() const { return checks_; }
    bool has(const std::string& header_and_name) const { return names_.contains(header_and_name); }

private:
    std::set<token_check> checks_;
    std::set<std::string> names_;
};

/// Fails each of the result types of the list with a token, and each of Types with each token.
template <class... Types>
void check_tokens(const token_list& all) {
    test_loop loop;
    asio::thread_pool other(1);
    auto steps = [&]() -> asio::awaitable<void> {
        for (const token_check check : all.checks()) {
            const int failed = co_await check(loop.executor(), other.get_executor());
            CHECK(failed == 1);
        }
        constexpr token_check with_all_tokens[] = {&failures_by_token<Types>...};
        for (const token_check check : with_all_tokens) {
            const int failed = co_await check(loop.executor(), other.get_executor());
            CHECK(failed == 5);
        }
    };
    loop.run(steps());
    other.join();
}

}  // namespace zkasio::test
