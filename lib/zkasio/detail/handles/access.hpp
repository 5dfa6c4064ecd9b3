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
    /// Of a client or a session, see client::rooted().
    template <class Client>
    static const std::string* root_of(const Client& c) noexcept {
        return c.root_;
    }
    /// A session_hold once more, with a view's paths. Its destructor would end the hold: see forget().
    template <class Hold, class Session>
    static Hold in_view_of(const Session& on, const Hold& h) noexcept {
        return Hold(h.core_, h.hold_, on.root_);
    }
    template <class Hold>
    static void forget(Hold& h) noexcept {
        h.hold_ = nullptr;
    }
};

}  // namespace zkasio::detail
