#pragma once

#include <type_traits>

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

}  // namespace zkasio::detail
