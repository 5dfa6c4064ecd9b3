#pragma once

#include <type_traits>
#include <utility>

namespace zkasio::detail {

/// g++ 12.2 runs the destructor of a temporary closure twice when it is an argument inside a co_await expression
/// (GCC bug 99576 and its relatives). Harmless when the closure has no destructor to speak of.
template <class Closure>
inline constexpr bool safe_in_co_await =
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
    std::is_lvalue_reference_v<Closure> || std::is_trivially_destructible_v<std::remove_cvref_t<Closure>>;
#else
    true;
#endif

/// `Function(closure)`, where that is safe: for functions that take the closure as an argument and return an awaitable.
template <class Function, class Closure>
Function safe_function(Closure&& closure) {
    static_assert(safe_in_co_await<Closure>,
                  "g++ 12 destroys this closure twice inside a co_await expression: name the lambda first, and pass the name");
    return Function(std::forward<Closure>(closure));
}

}  // namespace zkasio::detail
