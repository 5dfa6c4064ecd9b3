#pragma once

#include <utility>

namespace zkasio::detail {

/// Makes objects of public classes from their internal parts, and gives access to these parts: neither is public.
struct access {
    template <class T, class... Parts>
    static T make(Parts&&... parts) {
        return T(std::forward<Parts>(parts)...);
    }

    /// The core of a client. Null in a client that was moved from.
    template <class Client>
    static const auto& core_of(const Client& c) noexcept {
        return c.core_;
    }
    /// Of client_options: without resume().
    template <class Options>
    static void forget_session(Options& o) noexcept {
        o.resume_.clear();
    }
};

}  // namespace zkasio::detail
