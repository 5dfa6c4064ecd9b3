#pragma once

#include <utility>

namespace zkasio::detail {

/// Makes objects of public classes from what they consist of inside of the library, and looks into them: neither is
/// public.
struct access {
    template <class T, class... Parts>
    static T make(Parts&&... parts) {
        return T(std::forward<Parts>(parts)...);
    }

    /// What is behind a client. Null in one that was moved from.
    template <class Client>
    static const auto& core_of(const Client& c) noexcept {
        return c.core_;
    }
};

}  // namespace zkasio::detail
