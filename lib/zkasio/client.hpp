#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client_options.hpp>
#include <zkasio/client_stats.hpp>
#include <zkasio/export.hpp>
#include <zkasio/kept_body.hpp>
#include <zkasio/operations.hpp>
#include <zkasio/session.hpp>
#include <zkasio/session_event.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/execution_context.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>

namespace zkasio {

namespace detail {
class event_subscription;
struct access;
}

/// The session's events, one after another, from the moment of `client::events()` on (its first tells the state at that
/// moment). Keeps the latest 256 for a slow reader. One coroutine at a time.
class ZKASIO_EXPORT session_events {
public:
    /// *Completes when* something happens; session_state::closed is the last event. *Fails with* errc::client_closed
    /// after that.
    asio::awaitable<session_event> next() const;

private:
    friend struct detail::access;
    session_events(std::shared_ptr<detail::core> core, std::shared_ptr<detail::event_subscription> subscription)
        : core_(std::move(core)), subscription_(std::move(subscription)) {}

    std::shared_ptr<detail::core> core_;
    std::shared_ptr<detail::event_subscription> subscription_;
};

/// A connection to a ZooKeeper ensemble: one session at a time, kept alive, reconnected, and after its expiry replaced.
///
/// A handle: copies share the same connection. When the last copy is destroyed, and no guard is left of the locks that
/// were acquired with it, the session is closed in the background. There is no thread in here, only a strand over the
/// executor that it was given: somebody has to run that. The executor's context must outlive all handles, recipes and
/// guards.
///
/// May be used from any thread; several clients may live on several threads. One that was moved from answers
/// errc::invalid_argument to everything, and its state() is session_state::closed. With g++ 12, mind what
/// coroutine_safety.hpp says of temporaries around a `co_await`: `client both[2] = {zk, co_await other()}` destroys one
/// client twice.
///
/// fork(): the client and all that was made with it stay with the parent. In a child every operation fails with
/// errc::forked, nothing is held() and nothing is sent; to destroy them is fine. A child may make clients of its own;
/// on an inherited io_context only after `notify_fork(fork_child)`.
class ZKASIO_EXPORT client : public operations {
public:
    /// Starts to connect at once. Throws zkasio::error for options that make no sense; an ensemble that cannot be
    /// reached is not an error here, see connected().
    client(asio::any_io_executor executor, client_options options);

    /// The same on the executor of `context`, an asio::io_context or an asio::thread_pool: `client zk(io, options)`.
    template <class Context>
        requires std::is_convertible_v<Context&, asio::execution_context&>
    client(Context& context, client_options options)
        : client(asio::any_io_executor(context.get_executor()), std::move(options)) {}

    /// The strand. Coroutines that run on it talk to the client without changing threads.
    asio::any_io_executor get_executor() const;
    const client_options& options() const;
    session_state state() const noexcept;

    /// *Completes when* there is a connection, at once if there is one.
    /// *Fails with* errc::not_connected after client_options::connection_timeout, with the last failure in its message
    /// (the client goes on trying); zk_errc::auth_failed; errc::client_closed; errc::forked; with session_renewal::none
    /// errc::session_expired.
    asio::awaitable<void> connected() const;

    /// As connected(), and returns the session.
    asio::awaitable<session> current_session() const;

    /// What this client has done so far, in numbers. From any thread, at any time.
    client_stats stats() const;

    /// The session of this moment, which may not be connected yet.
    session session_now() const;

    /// What client_options::resume() takes, to hand the session over to another process. Not to be used by two at a
    /// time.
    asio::awaitable<session_credentials> credentials() const;

    /// For writers of recipes: while this exists, the client does not close by itself, as if there were one more copy
    /// of it. What they give to a lock_guard. Allocates nothing. close() ends everything all the same. Null for a
    /// client that was moved from.
    std::shared_ptr<const void> keep_open() const noexcept { return last_handle_; }

    session_events events() const;

    /// Proves who we are, on this connection and on every later one. When the connection is lost before the answer has
    /// come, this waits for another one for as long as the session lives.
    /// *Fails with* zk_errc::auth_failed if a server refuses it. By ZooKeeper's protocol that ends the session: the
    /// client opens a new one without this credential. (When it is one of client_options::auth() that is refused, the
    /// client stays in session_state::auth_failed.) A wrong password is not noticed here: the digest scheme accepts
    /// any, and the nodes' ACLs decide.
    asio::awaitable<void> add_auth(std::string scheme, bytes credential) const;

    /// From now on these servers; the session stays. The chroot cannot be changed.
    /// *Completes when* the list was taken; *fails with* errc::invalid_argument.
    asio::awaitable<void> set_servers(std::string servers) const;

    /// Runs `body(session)`, a coroutine, which may keep a copy or a reference, for as long as the current session is
    /// certain to live: when it expires, when its lease ends, when the connection is lost with suspension_policy::lose,
    /// or when the client is closed, the body receives a terminal cancellation, and when the body has really ended,
    /// this throws errc::session_expired; what the body has thrown is nested in it, if it is more than a cancellation.
    /// Otherwise it completes when the body does, with what the body returns. *Lifetime* of the body: see
    /// kept_body.hpp.
    template <class Body>
    asio::awaitable<detail::body_value<Body, const session&>> with_session(Body&& body) const {
        return detail::run_kept(std::forward<Body>(body), &run_with_session, core_);
    }

    /// *Completes when* all is done that was going on in the background of this client at the moment of the call: locks
    /// of guards that were destroyed are released, nodes of acquires that were cancelled are gone, as is whatever
    /// toolbox::ensure_removed() was asked for, and tasks of toolbox::run_in_background() have ended. Waits through
    /// reconnects; what ends with the session is done, too. What begins later does not count, nor do the watches of
    /// `watch` objects that are gone.
    /// *Fails with* errc::client_closed, and errc::forked in a child process. *Cancellation* ends the wait only. Not to
    /// be awaited by a task of toolbox::run_in_background(), which would wait for itself.
    asio::awaitable<void> idle() const;

    /// Ends the session. Operations that are under way may finish, for up to client_options::close_timeout; everything
    /// else fails with errc::client_closed. Never blocks a thread.
    /// *Completes when* all is over. *Cancellation* ends the wait only.
    asio::awaitable<close_result> close() const;

private:
    friend struct detail::access;
    explicit client(std::shared_ptr<detail::core> core);
    static asio::awaitable<void> run_with_session(std::function<asio::awaitable<void>(const session&)> body,
                                                  std::shared_ptr<detail::core> core);

    // Closes the core when the last of its owners goes: clients, and who has keep_open().
    std::shared_ptr<void> last_handle_;
};

}  // namespace zkasio
