#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/coroutine_safety.hpp>
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

/// Work that outlives sessions, see run_in_each_session(), which makes it. Move-only; stops the work when destroyed.
///
/// *Lifetime*: until the work has ended, it keeps the client open (see client::keep_open()), also when all copies of
/// that are gone. Like a guard it must not outlive the execution context of its client. One that was made without
/// arguments, or moved from, counts as stopped.
class ZKASIO_EXPORT session_loop {
public:
    session_loop() noexcept = default;
    session_loop(session_loop&& other) noexcept = default;
    session_loop& operator=(session_loop&& other) noexcept;
    ~session_loop() { stop(); }

    /// The body receives a terminal cancellation, and is not begun again. From any thread, also from within the body.
    /// What is left of it goes on in the background: from now on client::idle() waits for its end.
    void stop() noexcept;

    /// *Completes when* the body has really ended, and will not be begun again: it has returned, or stop() was called.
    /// *Fails with* whatever has ended it otherwise: what the body has thrown, errc::client_closed, errc::forked,
    /// zk_errc::auth_failed, and with session_renewal::none errc::session_expired. (What a body throws that was stopped
    /// is logged, if it is more than a cancellation or condition::retryable.) *Cancellation* ends the wait only.
    asio::awaitable<void> stopped() const;

private:
    friend struct detail::access;
    explicit session_loop(std::shared_ptr<detail::session_loop_state> state) noexcept : state_(std::move(state)) {}

    std::shared_ptr<detail::session_loop_state> state_;
};

/// Runs `body(session)`, a coroutine, in one session after another, for as long as the client lives: what members of a
/// group are made of, and whatever else is to outlive a session.
///
/// The body runs on the client's strand, client::get_executor(): what it shares with other code there needs no lock. It
/// begins as soon as there is a connection, and never within the call. When its session ends, it receives a terminal
/// cancellation, and when it has really ended, it is begun anew with the next session. To be cancelled it has to let
/// that through: one that returns is done, whatever has become of its session.
///
///   - It returns: nothing is left to do, and the loop is over.
///   - It throws condition::retryable (the connection was lost, a server has too much to do): it is begun again after a
///     pause, as soon as there is a connection; in the same session, if that lives. The pauses are those of the
///     client's retry_policy, see retry_policy::pause(); they grow while the body fails again and again, and begin anew
///     with the next session, and when it had run for longer than a session timeout.
///   - Its session is over, and it throws a cancellation, condition::session_ended or errc::lock_lost: the next
///     session.
///   - Anything else that it throws ends the loop. So do close(), fork(), a refused credential of
///     client_options::auth(), and with session_renewal::none the end of the session. That there is no connection does
///     not, however long it takes. See session_loop::stopped().
///
/// client::idle() does not wait for a loop, unless that was stopped. client::close() ends it, and waits for it, for up
/// to client_options::close_timeout.
///
/// Throws errc::invalid_argument for an empty body, and for a client that was moved from. *Lifetime* of the body: it is
/// copied, or moved when it has no name (see also zkasio::moved()), and destroyed before stopped() completes.
///
/// @param on_end called once on the client's strand when the loop is over, before stopped() completes, with what that
/// fails with, or null. May be empty. What it throws is logged.
template <class Body, class OnEnd = std::function<void(std::exception_ptr)>>
[[nodiscard]] session_loop run_in_each_session(client zk, Body&& body, OnEnd&& on_end = OnEnd()) {
    return detail::start_session_loop(std::move(zk),
                                      detail::safe_function<detail::session_body>(std::forward<Body>(body)),
                                      detail::safe_function<detail::session_loop_end>(std::forward<OnEnd>(on_end)));
}

}  // namespace zkasio
