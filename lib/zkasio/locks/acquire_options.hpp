#pragma once

#include <zkasio/coroutine_safety.hpp>
#include <zkasio/locks/lock_owner.hpp>
#include <zkasio/locks/queue_position.hpp>

#include <optional>
#include <utility>

namespace zkasio {

/// What may differ from one acquire to the next.
class acquire_options {
public:
    acquire_options() {}
    /// Who acquires: if it holds the lock already, it has it at once.
    acquire_options& owner(lock_owner o) { owner_ = std::move(o); return *this; }
    /// Tells where in the queue we stand while we wait. Costs a listing whenever only that can tell.
    template <class Observer = position_observer>
    acquire_options& on_position(Observer&& f) {
        observer_ = detail::safe_function<position_observer>(std::forward<Observer>(f));
        return *this;
    }

    /// When the session expires while we wait, we queue again with the next one instead of failing with
    /// errc::session_expired: at the end, since the place is lost with the session (on_position() tells the new one),
    /// and within the same time limit. Ends as an acquire that begins then does: also with errc::not_connected, when
    /// there is no connection for client_options::connection_timeout, and, with session_renewal::none, with
    /// errc::session_expired. What is held already is lost with its session all the same.
    acquire_options& survive_expiry() { survive_expiry_ = true; return *this; }

    const std::optional<lock_owner>& owner() const noexcept { return owner_; }
    const position_observer& on_position() const noexcept { return observer_; }
    bool survives_expiry() const noexcept { return survive_expiry_; }

private:
    std::optional<lock_owner> owner_;
    position_observer observer_;
    bool survive_expiry_ = false;
};

}  // namespace zkasio
