#include <zkasio/recipe/hold_in_view.hpp>

#include <zkasio/detail/handles/access.hpp>

namespace zkasio {

hold_in_view::hold_in_view(const session_hold& of, const session& on)
    : hold_(detail::access::in_view_of(on, of)) {}

hold_in_view::~hold_in_view() { detail::access::forget(hold_); }

}  // namespace zkasio
