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
    /// See client::rooted().
    template <class Client>
    static auto view_of(const Client& c) noexcept {
        return c.view_;
    }
    /// A session_hold once more, with the paths of another view. Its destructor would end the hold: see forget().
    template <class Hold, class View>
    static Hold in_view(const Hold& h, View view) noexcept {
        return Hold(h.core_, h.hold_, view);
    }
    template <class Hold>
    static void forget(Hold& h) noexcept {
        h.hold_ = nullptr;
    }
};

}  // namespace zkasio::detail
