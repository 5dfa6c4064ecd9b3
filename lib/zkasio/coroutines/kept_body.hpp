#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/coroutines/coroutine_safety.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

/// How a function that runs a `body` keeps it: with_lock(), lock_guard::run(), session_hold::run(),
/// client::with_session(), one_shot_event::run_until(), run_with_deadline().
///
/// A body is a callable that returns an asio::awaitable, whose executor is asio::any_io_executor.
///   - A body with a name is not copied: the function refers to the body, which must live until the function completes.
///   - Any other body, and zkasio::moved(name), is moved into the function's coroutine, and lives as long as that
///     coroutine. Such a body may be move-only.
///   - The function returns the body's result. If the body may be ended early by something that is no error, as in
///     run_until(), the function returns a std::optional of the result, which is empty in this case.
///   - A std::function or a function pointer that is empty is refused with errc::invalid_argument when the function is
///     awaited.
///
/// A body with a name must not be destroyed or moved from between the call and the co_await either.
namespace zkasio::detail {

template <class Callable>
struct plain_body {
    using type = std::remove_reference_t<Callable>;
};
template <class Callable>
    requires is_moved_callable<std::remove_cvref_t<Callable>>
struct plain_body<Callable> {
    using type = std::remove_reference_t<decltype(std::declval<Callable>().from)>;
};

/// The result T of a body that returns asio::awaitable<T>; no_body if the callable is no body.
struct no_body {};
template <class Returned>
struct awaited {
    using type = no_body;
};
template <class T>
struct awaited<asio::awaitable<T>> {
    using type = T;
};
template <class Callable, class... Args>
struct called {
    using type = no_body;
};
template <class Callable, class... Args>
    requires std::is_invocable_v<Callable&, Args...>
struct called<Callable, Args...> {
    using type = typename awaited<std::invoke_result_t<Callable&, Args...>>::type;
};
template <class Body, class... Args>
using body_value = typename called<typename plain_body<Body>::type, Args...>::type;

/// Compilers print this name, with its arguments, when a callable is no body.
template <class... Args>
struct a_body_is_called_with {
    template <class Body>
    static constexpr bool and_returns_an_awaitable = !std::is_same_v<body_value<Body, Args...>, no_body>;
};

/// The result of run_until() and the like for a body that returns T: whether the body has ended of its own accord, and
/// with which value.
template <class T>
using unless_stopped =
    std::conditional_t<std::is_void_v<T>, bool, std::optional<std::conditional_t<std::is_void_v<T>, bool, T>>>;

/// Where Asio's or the compiler's own words would be that nothing matches.
template <class Executor, class... Arguments>  // so that each call is told of
constexpr void refuse_other_executor() {
    static_assert(std::is_same_v<Executor, asio::any_io_executor>,
                  "an operation is an asio::awaitable whose executor is asio::any_io_executor: a coroutine of another "
                  "type awaits the whole by zkasio::async(timeout(...), token)");
}

template <class Body>
bool is_empty_body(const Body& body) {
    if constexpr (is_std_function<std::remove_cvref_t<Body>> || std::is_pointer_v<Body>)
        return !body;
    else
        return false;
}

/// Keeps the body and its result in this coroutine's frame, and lets `run` call the body. `Body` is a reference if the
/// caller has a name for the body. An empty body is left to `run`, which throws the error.
template <class Body, class T, class Ended, class... Args, class... Bound>
asio::awaitable<std::conditional_t<std::is_void_v<Ended>, T, unless_stopped<T>>> keep_body(
    Body body, asio::awaitable<Ended> (*run)(std::function<asio::awaitable<void>(Args...)>, Bound...), Bound... bound) {
    std::function<asio::awaitable<void>(Args...)> call;
    if constexpr (std::is_void_v<T>) {
        if (!is_empty_body(body)) call = [&body](Args... args) { return body(std::forward<Args>(args)...); };
        co_return co_await run(std::move(call), std::move(bound)...);
    } else {
        std::optional<T> value;
        if (!is_empty_body(body))
            call = [&body, &value](Args... args) -> asio::awaitable<void> {
                T ended = co_await body(std::forward<Args>(args)...);
                value.emplace(std::move(ended));
            };
        (void)co_await run(std::move(call), std::move(bound)...);
        if constexpr (std::is_void_v<Ended>)
            co_return std::move(*value);
        else
            co_return std::move(value);
    }
}

/// Lets `run` run the body, which is kept as described at the top of this file.
template <class Body, class Ended, class... Args, class... Bound>
auto run_kept(Body&& body, asio::awaitable<Ended> (*run)(std::function<asio::awaitable<void>(Args...)>, Bound...),
              std::type_identity_t<Bound>... bound) {
    using value = body_value<Body, Args...>;
    using plain = typename plain_body<Body>::type;
    using kept = std::conditional_t<std::is_lvalue_reference_v<Body>, Body, plain>;
    using nothing = asio::awaitable<std::conditional_t<std::is_void_v<Ended>, value, unless_stopped<value>>>;
    static_assert(a_body_is_called_with<Args...>::template and_returns_an_awaitable<Body>,
                  "a body takes what it is called with, see the condition, and returns an asio::awaitable, whose "
                  "executor is asio::any_io_executor");
    if constexpr (std::is_same_v<value, no_body>)
        return nothing();
    else if constexpr (is_moved_callable<std::remove_cvref_t<Body>>)
        return keep_body<plain, value>(std::move(body.from), run, std::move(bound)...);
    else if constexpr (refuse_unsafe<Body>())
        return keep_body<kept, value>(std::forward<Body>(body), run, std::move(bound)...);
    else
        return nothing();
}

}  // namespace zkasio::detail
