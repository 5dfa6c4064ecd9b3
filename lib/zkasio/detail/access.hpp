#pragma once

#include <utility>

namespace zkasio::detail {

/// Makes objects of public classes from what they consist of inside of the library: their constructors for that are not
/// public.
struct access {
    template <class T, class... Parts>
    static T make(Parts&&... parts) {
        return T(std::forward<Parts>(parts)...);
    }
};

}  // namespace zkasio::detail
