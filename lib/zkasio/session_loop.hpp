#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/coroutines/coroutine_safety.hpp>
#include <zkasio/export.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <utility>

namespace zkasio {

class session_loop;

namespace detail {
struct access;
struct session_loop_state;
using session_body = std::function<asio::awaitable<void>(const session&)>;
using session_loop_end = std::function<void(std::exception_ptr)>;
ZKASIO_EXPORT session_loop start_session_loop(client zk, session_body body, session_loop_end on_end);
}  // namespace detail

/// Work that outlives sessions, made by run_in_each_session(). Move-only; stops the work when destroyed.
///
/// *Lifetime*: until the work has ended, the loop keeps the client open (see client::keep_open()), also when all copies
/// of the client are destroyed. Like a guard, the loop must not outlive the execution context of its client. A loop
/// that was made without arguments, or moved from, counts as stopped.
class ZKASIO_EXPORT session_loop {
public:
    session_loop() noexcept = default;
    session_loop(session_loop&& other) noexcept = default;
    session_loop& operator=(session_loop&& other) noexcept;
    ~session_loop() { stop(); }

    /// The body receives a terminal cancellation, and is not begun again. From any thread, also from within the body.
    /// The rest of the body runs on in the background: from now on client::idle() waits for the body's end.
    void stop() noexcept;

    /// *Completes when* the loop is over, by the body's return or by stop(), and the body has really ended.
    /// *Fails with* the error that has ended the loop otherwise: an exception of the body, errc::client_closed,
    /// errc::forked, zk_errc::auth_failed, and with session_renewal::none errc::session_expired; errc::client_closed
    /// has error::outcome_unknown() if close() has interrupted a write of the body. (If a body that was stopped throws
    /// more than a cancellation or condition::retryable, its exception is logged.)
    /// *Cancellation* ends the wait only.
    asio::awaitable<void> stopped() const;

private:
    friend struct detail::access;
    explicit session_loop(std::shared_ptr<detail::session_loop_state> state) noexcept : state_(std::move(state)) {}

    std::shared_ptr<detail::session_loop_state> state_;
};

/// Runs `body(session)`, a coroutine, in one session after another, for as long as the client lives: for members of a
/// group, and for all other work that is to outlive a session.
///
/// The body runs on the client's strand, client::get_executor(): data that the body shares with other code there needs
/// no lock. The body begins as soon as there is a connection, and never within the call. When its session ends, the
/// body receives a terminal cancellation; when the body has really ended, it is begun again with the next session. The
/// body has to let this cancellation through: a body that returns ends the loop, even if its session is over.
///
///   - The body returns: nothing is left to do, and the loop is over.
///   - The body throws condition::retryable (the connection was lost, a server has too much to do): the body is begun
///     again after a pause, as soon as there is a connection; in the same session, if that lives. The pauses are those
///     of the client's retry_policy, see retry_policy::pause(). These pauses grow while the body fails again and again,
///     and begin again in the next session, and when the body had run for longer than a session timeout.
///   - The session is over, and the body throws a cancellation, condition::session_ended or errc::lock_lost: the body
///     is begun again in the next session. If the body had run in the session for less than a session timeout, there is
///     a pause before that, see session_pace: a request of the body may be what ends each session.
///   - Any other exception of the body ends the loop. So do close(), fork(), a refused credential of
///     client_options::auth(), and with session_renewal::none the end of the session. A missing connection does not end
///     the loop, however long it is missing. See session_loop::stopped().
///
/// client::idle() does not wait for a loop, unless the loop was stopped. client::close() ends the loop, and waits for
/// its end, for up to client_options::close_timeout.
///
/// Throws errc::invalid_argument for an empty body, and for a client that was moved from.
/// *Lifetime* of the body: copied, or moved if unnamed (see zkasio::moved()); destroyed before stopped() completes.
///
/// @param on_end called once on the client's strand when the loop is over, before stopped() completes, with the
/// exception that stopped() throws, or null. May be empty. Exceptions of on_end are logged.
template <class Body, class OnEnd = std::function<void(std::exception_ptr)>>
[[nodiscard]] session_loop run_in_each_session(client zk, Body&& body, OnEnd&& on_end = OnEnd()) {
    return detail::start_session_loop(std::move(zk),
                                      detail::safe_function<detail::session_body>(std::forward<Body>(body)),
                                      detail::safe_function<detail::session_loop_end>(std::forward<OnEnd>(on_end)));
}

}  // namespace zkasio
