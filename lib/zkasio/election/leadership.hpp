#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>
#include <zkasio/kept_body.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/loss_reason.hpp>
#include <zkasio/transaction.hpp>

#include <asio/awaitable.hpp>

#include <string>
#include <utility>
#include <vector>

namespace zkasio {

/// One term of a leader: from its election until it resigns or loses the leadership. Move-only; resigns when destroyed.
///
/// It is the guard of a lock, and all that lock_guard says of leases, executors and lifetimes is true for it: held()
/// says no before anybody else can be elected, as far as a client can know; only token() and commit() are proof. Its
/// node is watched from the election on: when an operator removes it, held() says no as soon as a server has told this
/// client. One that was made without arguments, or moved from, leads nothing.
class ZKASIO_EXPORT leadership {
public:
    leadership() noexcept = default;
    /// For writers of recipes. @param guard of the lock that the candidates queue for.
    explicit leadership(lock_guard guard) noexcept : guard_(std::move(guard)) {}

    /// Rises with every election, over the whole ensemble: the czxid of the leader's node, which observers see as
    /// leader_info::token.
    fencing_token token() const noexcept { return guard_.token(); }
    /// Of the leader's node.
    const std::string& path() const noexcept { return guard_.path(); }

    /// Whether we lead. Asks nobody; may be called from any thread, and as often as wanted.
    bool held() const noexcept { return guard_.held(); }
    boot_clock::time_point held_until() const noexcept { return guard_.held_until(); }
    /// loss_reason::none while nothing is wrong.
    loss_reason reason() const noexcept { return guard_.reason(); }

    /// *Completes when* the leadership is lost, or we have resigned, with the reason.
    asio::awaitable<loss_reason> lost() const { return guard_.lost(); }

    /// Applies the transaction if, and only if, we still lead when the servers apply it. See lock_guard::commit().
    asio::awaitable<std::vector<step_result>> commit(transaction steps) const {
        return guard_.commit(std::move(steps));
    }

    /// Tells observers something: an address, a load. It replaces what this leader has proclaimed before, and counts
    /// until this leader has gone. leader_info::data is this from now on, instead of leader_election_options::id().
    ///
    /// It is written into the data of the election's directory, and not into the leader's node, see directory_note: the
    /// next candidate watches that node, and a LeaderLatch of Curator's would never lead after a write into it. So who
    /// may read the directory may read what is proclaimed, candidates() and Curator's getLeader() tell the id, and
    /// observers of zkasio 0.2 and older do, too. (This one tells what those leaders proclaim.)
    /// *Completes when* the servers have it. *Fails with* errc::lock_lost when we do not lead any more, and nothing is
    /// written; errc::lock_released when we have resigned; zk_errc::no_auth when the directory is another's, who does
    /// not let us write; errc::invalid_argument when its data are somebody else's; else as commit(). When
    /// error::outcome_unknown(), it does no harm to proclaim the same once more.
    asio::awaitable<void> proclaim(bytes data) const;

    /// Runs `body()`, a coroutine, for as long as we lead. See lock_guard::run(): when the leadership is lost, the body
    /// receives a terminal cancellation, and when it has really ended, this throws errc::lock_lost.
    template <class Body>
    asio::awaitable<detail::body_value<Body>> run(Body&& body) const {
        return guard_.run(std::forward<Body>(body));
    }

    /// Gives the leadership up; from the call on, held() is false.
    /// *Completes when* the server has removed the node, and the next candidate is elected, or the session is over.
    /// *Cancellation*: ends the wait; the resignation goes on. A second call does nothing.
    asio::awaitable<void> resign() { return guard_.release(); }

    /// What is behind it, for functions that take any lock_guard; its revoke_requested(), for instance, tells that an
    /// operator asks the leader to resign.
    const lock_guard& guard() const noexcept { return guard_; }

private:
    lock_guard guard_;
};

}  // namespace zkasio
