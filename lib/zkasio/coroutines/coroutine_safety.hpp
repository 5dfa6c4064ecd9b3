#pragma once

#include <functional>
#include <type_traits>
#include <utility>

/// How g++ 12 mistreats temporaries in an expression with a `co_await`.
///
/// Debian 12's g++ 12.2 runs the destructor of some temporaries twice (GCC bug 99576 and its relatives):
///   - a string, or another object with a destructor, of `?:` whose arms are not both names or both literals:
///     `co_await f(o ? *o : "")`, `co_await f(c ? a : a + "x")`. This frees the string twice, and is easily written:
///     name the value first, or use `o.value_or("")`. `grep -rnE 'co_await [^;]*\?[^;]*:'` finds such lines;
///   - a lambda that is written in the expression and has a capture with a destructor, also as the argument of
///     `std::function<...>(...)` or of another call;
///   - an aggregate that is made in the expression: `co_await f(thing{a, b})`;
///   - a list in braces of objects with a destructor: `co_await zk.set_acl(path, {acl_entry(...)})`,
///     `for (auto& x : {a, b}) co_await ...`; such a list often does not even compile ("array used as initializer").
///     Give the list a name, or use a function: acl_of(acl_entry(...));
///   - an array or an aggregate with a `co_await` in its braces: `client both[2] = {zk, co_await other()}`;
///   - `?:` whose result has a destructor, with a `co_await` in it or before it: `c ? co_await a() : co_await b()` and
///     `co_await (c ? a() : b())`. Write an `if`, or pass the difference as an argument, as
///     shared_mutex::acquire(lock_kind) does.
///
/// These are safe: an object with a name, also `std::move(name)`; lambdas that capture by reference, or that capture
/// only objects without a destructor; strings and classes with constructors of their own; the result of a function.
///
/// When compiled with g++ 12, functions of zkasio that take a callable and return an awaitable refuse every callable
/// without a name whose destructor does something. Such a function cannot see whether the call is in a `co_await`
/// expression, nor tell `std::move(name)` from a lambda: pass `name`, or zkasio::moved(name). For functions that run a
/// body, kept_body.hpp says how long the callable is kept; the other functions copy a callable with a name once.
namespace zkasio {

/// A callable with a name, to be moved from. To be used as an argument only.
template <class Callable>
struct moved_callable {
    explicit moved_callable(Callable& named) noexcept : from(named) {}
    Callable& from;
};

/// Replaces `std::move(body)`, which cannot be told from a temporary: `co_await lock.with_lock(zkasio::moved(body))`.
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

/// Refuses a callable that is not safe_in_co_await, in words: for functions that take one and return an awaitable.
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

/// `Function(callable)`, if `callable` is safe: for functions that take a callable and return an awaitable.
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
