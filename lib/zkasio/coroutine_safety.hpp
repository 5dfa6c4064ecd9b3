#pragma once

#include <functional>
#include <type_traits>
#include <utility>

/// What g++ 12 makes of temporaries in an expression with a `co_await`.
///
/// Debian 12's g++ 12.2 runs the destructor of some of them twice (GCC bug 99576 and its relatives). It concerns
///   - a lambda that is written there, when a capture has a destructor, whatever it is passed to and however: also
///     within `std::function<...>(...)` or another call;
///   - an aggregate that is made there: `co_await f(thing{a, b})`;
///   - a list in braces of what has a destructor: `co_await zk.set_acl(path, {acl_entry(...)})`,
///     `for (auto& x : {a, b}) co_await ...`; often it does not even compile
///     ("array used as initializer"). Give the list a name, or use a function: acl_of(acl_entry(...));
///   - an array or an aggregate with a `co_await` in its braces: `client both[2] = {zk, co_await other()}`;
///   - `?:` whose result has a destructor, with a `co_await` in it or before it: `c ? co_await a() : co_await b()` and
///     `co_await (c ? a() : b())`. Write an `if`, or pass what differs as an argument, as
///     shared_mutex::acquire(lock_kind) does.
///
/// Safe are: whatever has a name, also `std::move(name)`; lambdas that capture by reference, or only what has no
/// destructor; strings and classes with constructors of their own; what a function returns.
///
/// Functions of zkasio that take a callable and return an awaitable refuse, when they are compiled with g++ 12, every
/// callable without a name whose destructor does something. They cannot see whether there is a `co_await` around, nor
/// tell `std::move(name)` from a lambda: pass `name`, or zkasio::moved(name). What becomes of it says kept_body.hpp for
/// functions that run a body; the others copy a name once.
namespace zkasio {

/// A callable that has a name, to be moved from. To be used as an argument only.
template <class Callable>
struct moved_callable {
    explicit moved_callable(Callable& named) noexcept : from(named) {}
    Callable& from;
};

/// `co_await lock.with_lock(zkasio::moved(body))`: as `std::move(body)`, where that cannot be told from a temporary.
template <class Callable>
moved_callable<Callable> moved(Callable& named) noexcept {
    return moved_callable<Callable>(named);
}

namespace detail {

template <class T>
inline constexpr bool is_moved_callable = false;
template <class T>
inline constexpr bool is_moved_callable<moved_callable<T>> = true;
template <class T>
inline constexpr bool is_std_function = false;
template <class T>
inline constexpr bool is_std_function<std::function<T>> = true;

template <class Callable>
inline constexpr bool safe_in_co_await =
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
    std::is_lvalue_reference_v<Callable> || std::is_trivially_destructible_v<std::remove_cvref_t<Callable>> ||
    is_std_function<std::remove_cvref_t<Callable>>;
#else
    true;
#endif

/// Refuses, in words, what is not safe_in_co_await: for functions that take a callable and return an awaitable.
template <class Callable>
constexpr bool refuse_unsafe() {
    static_assert(safe_in_co_await<Callable>,
                  "in a co_await expression g++ 12 destroys this callable twice: give it a name first (auto body = "
                  "[...] ...), and "
                  "pass the name, or zkasio::moved(name)");
    return safe_in_co_await<Callable>;
}

template <class Function, class Callable>
Function make_function(Callable&& callable) {
    static_assert(std::is_constructible_v<Function, Callable>,
                  "this callable cannot be copied, or does not take and return what it is asked to");
    if constexpr (std::is_constructible_v<Function, Callable>)
        return Function(std::forward<Callable>(callable));
    else
        return Function();
}

/// `Function(callable)`, where that is safe: for functions that take a callable and return an awaitable.
template <class Function, class Callable>
Function safe_function(Callable&& callable) {
    using plain = std::remove_cvref_t<Callable>;
    if constexpr (is_moved_callable<plain>)
        return make_function<Function>(std::move(callable.from));
    else if constexpr (refuse_unsafe<Callable>())
        return make_function<Function>(std::forward<Callable>(callable));
    else
        return Function();
}

}  // namespace detail
}  // namespace zkasio
