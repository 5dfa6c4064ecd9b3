#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/loss_reason.hpp>
#include <zkasio/transaction.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace zkasio {

/// One term of a leader: from its election until it resigns or loses the leadership. Move-only; resigns when destroyed.
///
/// A leadership is the guard of a lock, and all that lock_guard says of leases, executors and lifetimes applies here:
/// held() is false before another candidate can be elected, as far as a client can know; only token() and commit() are
/// proof. The leader's node is watched from the election on: when an operator removes it, held() is false as soon as a
/// server has told this client. A default-constructed or moved-from leadership leads nothing.
class ZKASIO_EXPORT leadership {
public:
    leadership() noexcept = default;
    /// For writers of recipes. @param guard of the lock that the candidates queue for.
    explicit leadership(lock_guard guard) noexcept : guard_(std::move(guard)) {}

    /// Rises with every election, over the whole ensemble: the czxid of the leader's node, which observers see as
    /// leader_info::token.
    fencing_token token() const noexcept { return guard_.token(); }
    /// The leader's node.
    const std::string& path() const noexcept { return guard_.path(); }

    /// Whether this term still lasts. Sends no request; may be called from any thread, and as often as wanted.
    bool held() const noexcept { return guard_.held(); }
    boot_clock::time_point held_until() const noexcept { return guard_.held_until(); }
    /// loss_reason::none while nothing is wrong.
    loss_reason reason() const noexcept { return guard_.reason(); }

    /// *Completes when* the leadership is lost or was resigned, with the reason.
    asio::awaitable<loss_reason> lost() const { return guard_.lost(); }

    /// Applies the transaction if, and only if, this leader still leads when the servers apply it. See
    /// lock_guard::commit().
    asio::awaitable<std::vector<step_result>> commit(transaction steps) const {
        return guard_.commit(std::move(steps));
    }

    /// Publishes `data` for observers: an address, a load. The data replace what this leader has proclaimed before, and
    /// are valid until this leader has gone. leader_info::data shows them instead of leader_election_options::id().
    ///
    /// The data are written into the data of the election's directory, and not into the leader's node, see
    /// directory_note: the next candidate watches that node, and a Curator LeaderLatch would never lead after a write
    /// into it. So every client that may read the directory may read what is proclaimed. candidates(), Curator's
    /// getLeader() and observers of zkasio 0.2 and older tell the id. (Observers of this version also tell what leaders
    /// of those versions proclaim.)
    /// *Completes when* the servers have the data.
    /// *Fails with* errc::lock_lost when this leader no longer leads, and nothing is written; errc::lock_released when
    /// it has resigned; zk_errc::no_auth when another client has created the directory, and its ACL does not let this
    /// client write; errc::invalid_argument when the directory has data of another program; else as commit(). After
    /// error::outcome_unknown(), the same data can safely be proclaimed once more.
    asio::awaitable<void> proclaim(bytes data) const;

    /// Runs `body()`, a coroutine, for as long as this term lasts. See lock_guard::run(): when the leadership is lost,
    /// the body receives a terminal cancellation, and when the body has really ended, run() throws errc::lock_lost.
    template <class Body>
    asio::awaitable<detail::body_value<Body>> run(Body&& body,
                                                  any_duration stop_margin = std::chrono::nanoseconds(0)) const {
        return guard_.run(std::forward<Body>(body), stop_margin);
    }

    /// Gives the leadership up. From the call on, held() is false.
    /// *Completes when* the server has removed the node, and the next candidate is elected, or the session is over.
    /// *Cancellation*: ends the wait; the resignation goes on. A second call does nothing.
    asio::awaitable<void> resign() { return guard_.release(); }

    /// The guard of the lock, for functions that take any lock_guard. Its revoke_requested(), for instance, tells that
    /// an operator asks the leader to resign.
    const lock_guard& guard() const noexcept { return guard_; }

private:
    lock_guard guard_;
};

}  // namespace zkasio
