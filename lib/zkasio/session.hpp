#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/export.hpp>
#include <zkasio/loss_reason.hpp>
#include <zkasio/operations.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio {

namespace detail {
struct access;
struct hold;
}

class session_hold;

/// One ZooKeeper session, from its opening to its end. Operations through this object run on this session or fail with
/// errc::session_expired, even if the client has opened another session since. A session that was made without
/// arguments, or moved from, is over(), and everything else fails with errc::invalid_argument.
class ZKASIO_EXPORT session : public operations {
public:
    session() noexcept : operations(nullptr, nullptr) {}

    std::int64_t id() const noexcept;
    /// The session timeout, as granted by the servers.
    std::chrono::milliseconds timeout() const noexcept;
    /// How long after an acknowledged write a heartbeat follows while a session_hold exists: a part of timeout(), see
    /// client_options::lease_renewal().
    boot_clock::duration renewal_interval() const noexcept;
    /// True when the session has ended, as far as this client knows.
    bool over() const noexcept;
    /// The session is certain to live before this time. Only kept up to date while a session_hold exists.
    boot_clock::time_point leased_until() const noexcept;

    /// *Completes when* the session is over, with errc::session_expired, errc::client_closed, errc::forked or
    /// zk_errc::auth_failed.
    asio::awaitable<std::error_code> ended() const;

    /// *Completes when* leased_until() is later than `beyond`, at once if it is already, with leased_until(). While no
    /// session_hold exists, that may never be.
    /// *Fails with* the reason for the end of the session, see ended().
    asio::awaitable<boot_clock::time_point> lease_extended(boot_clock::time_point beyond) const;

    // ------------------------------------------------------------------------------------ for writers of recipes

    /// A hold on a node. Throws errc::invalid_path and errc::too_large. @param path of a node that this session owns;
    /// "": a hold on the session alone.
    session_hold hold(std::string path) const;
    /// A hold on several nodes, lost as soon as one of the nodes is lost. Without nodes: a hold on the session alone.
    session_hold hold(std::vector<std::string> paths) const;
    /// A hold of several holds of this session, at least one: over as soon as one of its parts is over, in the same
    /// turn of the strand and for the same reason. Does not end its parts. Throws errc::invalid_argument for holds of
    /// other sessions.
    session_hold hold_all(const std::vector<std::reference_wrapper<const session_hold>>& parts) const;

    /// The client's strand.
    asio::any_io_executor get_executor() const;

    /// This session, for the requests of a wait: an outage that the session survives does not end the wait. A request
    /// that was not sent waits for a connection as long as the session lives, instead of
    /// client_options::connection_timeout. A request that only reads is repeated whenever it fails with
    /// condition::retryable, after the pauses of retry_policy::pause(). A write still fails with condition::retryable
    /// (its outcome is unknown, or the server has too much to do), and so does a request that toolbox has started
    /// (toolbox::start_create() and the like): see retry_until_certain(). Before the first connection of the session,
    /// requests wait as those of any operation.
    session patient() const;

    /// This session as the client itself has it, not a view: see client::unrooted().
    session unrooted() const;
    /// This session with the paths of the view that `on` is of, a client or a session: see client::rooted().
    session in_view_of(const operations& on) const;

private:
    friend struct detail::access;
    session(std::shared_ptr<detail::core> core, std::shared_ptr<detail::session_record> record, const std::string* root)
        : operations(std::move(core), std::move(record), root) {}
    session_hold hold_nodes(std::span<std::string> paths) const;
};

// ---------------------------------------------------------------------------------------- for writers of recipes

/// A hold on a session, and on nodes of it, from its creation to its end. Locks are made of holds.
///
/// As long as a hold exists, the session proves at short intervals, with a write that the ensemble's leader
/// acknowledges, that the session lives and that the nodes exist (see docs/architecture.md, "The lease"). The nodes
/// themselves are not touched. Move-only; a hold ends when destroyed. `held()` and `held_until()` may be called from
/// any thread. The coroutines that a hold returns may be awaited after the hold is destroyed. A hold that was made
/// without arguments, or moved from, counts as ended: errc::lock_released, loss_reason::released.
class ZKASIO_EXPORT session_hold {
public:
    session_hold() noexcept = default;
    session_hold(session_hold&&) noexcept = default;
    session_hold& operator=(session_hold&& other) noexcept;
    ~session_hold() { end(); }

    /// True if no other client can own what this hold protects: the lease has not ended, and the hold is not over.
    bool held() const noexcept;
    boot_clock::time_point held_until() const noexcept;
    /// loss_reason::none until the hold is over. Once confirmed() has completed, that is as long as held() is true.
    loss_reason reason() const noexcept;
    /// After the end of the hold: the node that is gone; if none is, the first node; "" if the hold has no nodes.
    std::string lost_path() const;

    /// *Completes when* the lease covers this hold, at once if it does already.
    /// *Fails with* errc::session_expired, errc::client_closed or errc::forked if the session ends first,
    /// errc::lock_lost if the hold is lost for another reason, errc::lock_released after end().
    asio::awaitable<void> confirmed() const;

    /// *Completes when* the hold is over, with the reason.
    asio::awaitable<loss_reason> lost() const;

    /// Runs `body()`, a coroutine, on a strand over the caller's executor. If the hold is lost, the body receives a
    /// terminal cancellation.
    /// *Completes when* the body has really ended, with what the body returns.
    /// *Fails with* the exception of the body.
    /// *Cancellation* is passed on to the body.
    /// *Lifetime* of the body: see kept_body.hpp.
    template <class Body>
    asio::awaitable<detail::body_value<Body>> run(Body&& body) const {
        return detail::run_kept(std::forward<Body>(body), &run_body, core_, hold_, root_);
    }

    /// For state machines that live on the client's strand: `f` is called there, once, when the hold is over for
    /// another reason than end() (at once if it already is). Several functions are called in the order in which they
    /// were given. To be called on the strand. Exceptions of `f` are logged.
    void on_lost(std::function<void(loss_reason)> f) const;

    /// Watches the nodes at once, or as soon as there is a connection, instead of when they have been held for a
    /// quarter of the session timeout. To be called on the strand.
    void watch_nodes() const;
    /// Whether all nodes are watched: the nodes then existed in the server's state as of its latest message to this
    /// client. On the strand only.
    bool nodes_watched() const noexcept;

    /// Of a hold on one node: the latest moment at which the ensemble, and not only a server, is known to have had the
    /// node. That is when the latest heartbeat was sent that has found the node; or while the node is watched the
    /// latest acknowledged write of the session within timeout() after that (an event of the watch would have come
    /// before the answer, unless an ACL keeps events from this client); or when the hold began; the maximum if no
    /// heartbeat may look at the node. The epoch for a hold that was moved from. From any thread.
    boot_clock::time_point node_checked() const noexcept;
    /// A heartbeat for this hold, at once unless the last one is more recent than a sixteenth of the session timeout.
    /// (Other writes of the session put heartbeats off.) To be called on the strand.
    void check_node() const;

    /// Ends the hold: reason `released`. From any thread. @param node_goes_away the caller removes the nodes next: the
    /// hold's watches on them end with the nodes, and are not removed one by one.
    void end(bool node_goes_away = false) const noexcept;
    /// Ends the hold for a reason that the caller has found: held() is false from now on. From any thread. @param path
    /// of the node that is gone, see lost_path(); in a hold of several holds, the part with this node ends, and so does
    /// the whole.
    void lose(loss_reason why, std::string_view path = {}) const noexcept;

private:
    friend class session;
    friend struct detail::access;
    session_hold(std::shared_ptr<detail::core> core, std::shared_ptr<detail::hold> hold,
                 const std::string* root) noexcept
        : core_(std::move(core)), hold_(std::move(hold)), root_(root) {}
    static asio::awaitable<void> run_body(std::function<asio::awaitable<void>()> body,
                                          std::shared_ptr<detail::core> core, std::shared_ptr<detail::hold> hold,
                                          const std::string* root);

    std::shared_ptr<detail::core> core_;
    std::shared_ptr<detail::hold> hold_;
    const std::string* root_ = nullptr;  // of its paths, see client::rooted()
};

}  // namespace zkasio
