#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client_options.hpp>
#include <zkasio/client_stats.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/export.hpp>
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
#include <string_view>
#include <type_traits>

namespace zkasio {

namespace detail {
class event_subscription;
struct access;
}

/// The session's events in order, beginning with the call of `client::events()`: the first event tells the state at
/// that moment. Keeps the latest 256 events for a slow reader. Only one coroutine at a time may await next().
class ZKASIO_EXPORT session_events {
public:
    /// *Completes when* there is a next event; session_state::closed is the last one.
    /// *Fails with* errc::client_closed after the last event.
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
/// A handle: copies share the same connection. When the last copy and the last guard of the locks that were acquired
/// with the client are destroyed, the session is closed in the background. A client has no thread, only a strand over
/// the executor that was given to it: the program has to run that executor. The executor's context must outlive all
/// handles, recipes and guards. The context of a coroutine that awaits the client, if it is another one, must outlive
/// that wait: a context whose coroutines still wait for a client may be destroyed only after close() has completed, or
/// after these coroutines were cancelled and have ended. (A wait keeps its coroutine, and is resumed with the client's
/// next event, on the coroutine's executor.)
///
/// May be used from any thread; several clients may live on several threads. A client that was moved from answers
/// errc::invalid_argument to everything, and its state() is session_state::closed. With g++ 12, mind the rules of
/// coroutine_safety.hpp for temporaries around a `co_await`: `client both[2] = {zk, co_await other()}` destroys one
/// client twice.
///
/// fork(): the client and all objects that were made with it stay with the parent. In a child, every operation fails
/// with errc::forked, nothing is held() and nothing is sent; these objects may be destroyed there. A child may make
/// clients of its own; on an inherited io_context only after `notify_fork(fork_child)`.
class ZKASIO_EXPORT client : public operations {
public:
    /// Starts to connect at once. Throws zkasio::error for invalid options; an ensemble that cannot be reached is not
    /// an error here, see connected().
    client(asio::any_io_executor executor, client_options options);

    /// Uses the executor of `context`, an asio::io_context or an asio::thread_pool: `client zk(io, options)`.
    template <class Context>
        requires std::is_convertible_v<Context&, asio::execution_context&>
    client(Context& context, client_options options)
        : client(asio::any_io_executor(context.get_executor()), std::move(options)) {}

    /// The strand. Coroutines that run on it talk to the client without changing threads.
    asio::any_io_executor get_executor() const;
    const client_options& options() const;
    session_state state() const noexcept;

    /// *Completes when* there is a connection, at once if there is one. With client_options::auth(), when a server has
    /// also accepted the credentials.
    /// *Fails with* errc::not_connected after client_options::connection_timeout, with the last failure in its message
    /// (the client goes on trying; with client_options::auth(), the attempt that is then under way is awaited);
    /// zk_errc::auth_failed; errc::client_closed; errc::forked; with session_renewal::none
    /// errc::session_expired.
    asio::awaitable<void> connected() const;

    /// As connected(), and returns the session; does not wait until a server has accepted the credentials.
    asio::awaitable<session> current_session() const;

    /// The statistics of this client so far. From any thread, at any time.
    client_stats stats() const;

    /// The current session, which may not be connected yet.
    session session_now() const;

    /// A view of this client: another handle of the same client, whose paths are below the node at `path`, as if that
    /// were a chroot in the list of servers. So are the paths that come back: of created nodes, events, contenders,
    /// guards, caches and errors, and the path() of a recipe. Sessions of a view are views, too, and so is
    /// rooted("/b") of a rooted("/a"), below "/a/b". rooted("") and rooted("/") are this view.
    ///
    /// All views are one client, with one session. A lock at "/lock" of rooted("/app") is the lock at "/app/lock" of
    /// the client: its waiters stand in one queue, and an acquire that would wait for itself is noticed. Logs,
    /// client_observer and stats() are the client's, and name nodes as the client itself has them. (The text of a log
    /// record of a view's recipe, but for locks, has the view's paths, and says which root they are below.)
    ///
    /// Costs no request, and the memory of the path as long as the client. The node need not exist: operations that
    /// create missing parents create it, too; but a transact() that reads or creates "/" needs it. (An error about a
    /// node above it has the whole path.) Where several objects work together, as in a multi_mutex or in
    /// transact_options::under(), all are of one view.
    /// Throws errc::invalid_path as operations do.
    client rooted(std::string_view path) const;

    /// The id and the password of the session, with which client_options::resume() takes the session over when this
    /// process is gone. Not to be used by two clients at a time: see hand_over(). From then on the session may be the
    /// other client's whenever this one has no connection: close() then leaves it to expire, and so does a client that
    /// goes on with a new session.
    /// *Fails with* errc::not_connected after client_options::connection_timeout; otherwise as connected().
    asio::awaitable<session_credentials> credentials() const;

    session_events events() const;

    /// Authenticates this client with a credential, on this connection and on every later one. If the connection is
    /// lost before the answer has arrived, add_auth() waits for another connection for as long as the session lives.
    /// *Fails with* zk_errc::auth_failed if a server refuses the credential. By ZooKeeper's protocol the refusal ends
    /// the session: the client opens a new session without this credential. (If a credential of client_options::auth()
    /// is refused, the client stays in session_state::auth_failed.) A wrong password is not noticed here: the digest
    /// scheme accepts any password, and the nodes' ACLs decide.
    asio::awaitable<void> add_auth(std::string scheme, bytes credential) const;

    /// Replaces the list of servers; the session stays. The chroot cannot be changed.
    /// *Completes when* the client has taken over the list.
    /// *Fails with* errc::invalid_argument; errc::client_closed; errc::forked.
    asio::awaitable<void> set_servers(std::string servers) const;

    /// Runs `body(session)`, a coroutine, for as long as the current session is certain to live. The body may keep a
    /// copy of the session or a reference to it. If the session expires, its lease ends, the connection is lost with
    /// suspension_policy::lose, or the client is closed, the body receives a terminal cancellation.
    /// *Completes when* the body does, with what the body returns, unless the body was cancelled for such a reason.
    /// *Fails with* errc::session_expired after such a cancellation, when the body has really ended; with
    /// errc::client_closed if the client was closed, errc::forked in a child process. If the body has thrown more than
    /// a cancellation, its exception is nested in this error. If it has ended with an error with
    /// error::outcome_unknown(), this error has it, too.
    /// *Lifetime* of the body: see kept_body.hpp.
    template <class Body>
    asio::awaitable<detail::body_value<Body, const session&>> with_session(Body&& body) const {
        return detail::run_kept(std::forward<Body>(body), &run_with_session, core_, root_);
    }

    /// *Completes when* all work is done that was under way in the background of this client at the moment of the call:
    /// locks of destroyed guards are released, nodes of cancelled acquires and nodes that toolbox::ensure_removed() was
    /// asked to remove are gone, and tasks of toolbox::run_in_background() have ended. Waits through reconnects; work
    /// that ends with the session is done, too. Later work does not count, nor do watches of destroyed `watch` objects,
    /// nor the node of a cohort_mutex that lingers, see cohort_mutex_options::linger(), nor what the former client of
    /// client_options::resume() has left.
    /// *Fails with* errc::client_closed, and errc::forked in a child process.
    /// *Cancellation* ends the wait only.
    /// Not to be awaited by a task of toolbox::run_in_background(): the task would wait for itself.
    asio::awaitable<void> idle() const;

    /// Ends the session. Operations that are under way may finish, for up to client_options::close_timeout; everything
    /// else fails with errc::client_closed. A session that has lost its connection waits as long for the next one, and
    /// is left to expire if there is none: its locks stay taken until then. Never blocks a thread.
    /// *Completes when* all of this is over, after twice that time at most.
    /// *Cancellation* ends the wait only.
    asio::awaitable<close_result> close() const;

    /// As close(), but the session stays, with its ephemeral nodes, for the client that resumes it: for the next
    /// process of the same service, say. Returns what client_options::resume() takes. If nobody resumes the session, it
    /// ends after its timeout. Locks that are held are lost here, and their nodes stay: release them before, or destroy
    /// their guards. So do the nodes of other recipes: of participants in a double_barrier, of a delivery that has not
    /// ended, of an acquire of slots or of an unfair_mutex that has not ended. The heir waits for a session timeout
    /// before it removes those that it meets, see client_options::resume(); the others keep everybody out until the
    /// session ends. Items that were to be given back after a pause are given back at once.
    /// *Completes when* nothing is left that idle() waits for, no other acquire and no campaign waits, also not that of
    /// a candidate or a partitioner, and the connection is closed: cancel what waits before.
    /// *Fails with* errc::client_closed if the client was closed before; otherwise as credentials(), and then the
    /// client is as it was.
    /// *Cancellation* ends the wait only: if the session was left already, another call returns the credentials.
    asio::awaitable<session_credentials> hand_over() const;

    // ------------------------------------------------------------------------------------ for writers of recipes

    /// The client itself, without rooted(): for what all views of a client share, as the bookkeeping of a lock. See
    /// toolbox::whole_path().
    client unrooted() const;
    /// Whether this is a view.
    bool is_rooted() const noexcept { return root_ != nullptr; }

    /// While the result exists, the client stays open, as if there were one more copy of the client: for
    /// a lock_guard. close() still ends everything. Allocates nothing. Null for a client that was moved from.
    std::shared_ptr<const void> keep_open() const noexcept { return last_handle_; }

private:
    friend struct detail::access;
    explicit client(std::shared_ptr<detail::core> core);
    static asio::awaitable<void> run_with_session(std::function<asio::awaitable<void>(const session&)> body,
                                                  std::shared_ptr<detail::core> core, const std::string* root);

    // Closes the core when its last owner is destroyed: a client, or a result of keep_open().
    std::shared_ptr<void> last_handle_;
};

}  // namespace zkasio
