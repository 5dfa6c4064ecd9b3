#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/asio_version.hpp>
#include <zkasio/bytes.hpp>
#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/election/leader_observer.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/contender_info.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/locks/lock_options.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/locks/name_scheme.hpp>
#include <zkasio/loss_reason.hpp>
#include <zkasio/transaction.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio {

/// How leader_election::lead() goes on from one term to the next.
class ZKASIO_EXPORT lead_options {
public:
    lead_options() {}
    /// If the body returns before the leadership is lost, lead() stands again, behind all present candidates, instead
    /// of completing. (Curator's LeaderSelector::autoRequeue(). The option concerns this case only: after a loss lead()
    /// always stands again.) If the body returns at once, minimum_tenure() bounds how often lead() stands again.
    lead_options& requeue() { requeue_ = true; return *this; }
    /// Once elected, lead() does not resign before this time has passed, even if the body returns earlier: a body with
    /// nothing to do does not make the leadership go round all candidates in a flurry. None by default. If the body
    /// fails or is cancelled, lead() resigns at once. If the leadership is lost after the body has returned, within
    /// that time, the body has completed nevertheless, and does not run again. Throws errc::invalid_argument when the
    /// time is negative.
    lead_options& minimum_tenure(any_duration t);
    /// lead() fails with an exception of the body also when it is condition::retryable or condition::outcome_unknown,
    /// for example when the connection was lost under a commit(). By default such an exception ends the term only.
    lead_options& fail_with_connection() { fail_with_connection_ = true; return *this; }

    /// The body is cancelled this time before the end of a lease that was not renewed, see lock_guard::run(): so it has
    /// this time to end while no other candidate can lead. 0 by default.
    lead_options& stop_margin(any_duration margin) { stop_margin_ = margin; return *this; }

    bool requeues() const noexcept { return requeue_; }
    bool fails_with_connection() const noexcept { return fail_with_connection_; }
    std::chrono::nanoseconds minimum_tenure() const noexcept { return minimum_tenure_; }
    std::chrono::nanoseconds stop_margin() const noexcept { return stop_margin_; }

private:
    bool requeue_ = false, fail_with_connection_ = false;
    std::chrono::nanoseconds minimum_tenure_{0}, stop_margin_{0};
};

/// The options that all candidates of one leader_election object share.
class leader_election_options {
public:
    leader_election_options() {}
    /// Written into the candidate's node, for observers, operators and candidates() to read: for example a host name.
    /// Curator also calls it id, and takes it for UTF-8. Observers see what a leader proclaims instead.
    leader_election_options& id(bytes i) { id_ = std::move(i).take(); return *this; }
    /// The ACL of the candidate's node and of directories created for it (client_options::default_acl()). It must let
    /// this client read and remove the node, and the other candidates read it. Observers that may not read the node
    /// know who leads, but not the leader's data. Of the directory, it must let candidates list, create and remove
    /// nodes, and, for leadership::proclaim(), write it.
    leader_election_options& acl(zkasio::acl a) { acl_ = std::move(a); return *this; }
    /// How the nodes are named: by default as Curator's LeaderLatch does. name_scheme::curator() shares the election
    /// with Curator's LeaderSelector, name_scheme::kazoo() with kazoo's Election.
    leader_election_options& names(name_scheme n) { names_ = std::move(n); return *this; }

    const std::string& id() const noexcept { return id_; }
    const zkasio::acl& acl() const noexcept { return acl_; }
    const name_scheme& names() const noexcept { return names_; }

private:
    std::string id_;
    zkasio::acl acl_ = default_acl();
    name_scheme names_ = name_scheme::curator_latch();
};

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
    /// into it. So every client that may read the directory may read what is proclaimed. candidates() and
    /// Curator's getLeader() tell the id.
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

/// The body of leader_election::lead(): a coroutine that runs in each term.
using lead_body = std::function<asio::awaitable<void>(leadership&)>;

namespace election_detail {
ZKASIO_EXPORT asio::awaitable<void> lead(lead_body body, client zk, mutex queue, lead_options how);
}

/// An election among all processes that name the same `path`: one of the candidates leads. When the leader resigns or
/// is lost, the candidate that has stood for the longest time follows.
///
/// Candidates queue for a fair lock, and its holder leads: everything that mutex says of queues, hand-over and leases
/// applies here. The nodes are those of Curator's LeaderLatch: Java and C++ services can stand in one election; see
/// leader_election_options::names() for other name schemes.
///
/// With client_options::suspension() at suspension_policy::lose, a leader whose connection is lost ends its term at
/// once, instead of with its lease.
///
/// The coroutines that the members return keep what they need: the object may be destroyed before they are awaited, and
/// while they run. One object may be used by any number of coroutines concurrently, on any executors; each campaign()
/// is a candidate of its own. A moved-from object refuses everything with errc::invalid_argument. Copies name the same
/// election.
class ZKASIO_EXPORT leader_election {
public:
    /// @param path a directory for this election only; created as a container when it is missing. Throws
    /// errc::invalid_path.
    leader_election(client zk, std::string path, leader_election_options options = leader_election_options());

    /// Stands for election.
    ///
    /// *Completes when* this candidate is elected. If the session expires before that, the candidate stands again with
    /// the next session, at the end of the queue: acquire_options::survive_expiry() is always on.
    /// *Fails with* what operations fail with; errc::not_connected when there is no connection for
    /// client_options::connection_timeout; errc::foreign_child; errc::invalid_argument for an acquire_options::owner():
    /// a term has one end, and cannot be shared by the guards of a lock_owner.
    /// *Cancellation*: leaves no node and no watch behind, and no other candidate waits for this one.
    asio::awaitable<leadership> campaign(acquire_options how = acquire_options()) const;

    /// As campaign(), but try_campaign() returns nothing instead of waiting for another candidate, see
    /// lockable::try_acquire(); the others return nothing when the time is over, see lockable::try_acquire_for().
    asio::awaitable<std::optional<leadership>> try_campaign(acquire_options how = acquire_options()) const;
    asio::awaitable<std::optional<leadership>> try_campaign_for(any_duration limit,
                                                                acquire_options how = acquire_options()) const;
    asio::awaitable<std::optional<leadership>> try_campaign_until(boot_clock::time_point limit,
                                                                  acquire_options how = acquire_options()) const;

    /// Stands for election. Whenever this candidate is elected, runs `body(leadership&)`, a coroutine, for as long as
    /// the candidate leads. A body is written for one term and may run many times.
    ///
    /// | what happens                         | lead() does                                | the body sees            |
    /// |--------------------------------------|--------------------------------------------|--------------------------|
    /// | the body returns while leading, or   | resigns, and completes with the returned   | with requeue(): runs     |
    /// | after it has resigned itself         | value; with lead_options::requeue():       | again in the next term   |
    /// |                                      | stands again                               |                          |
    /// | the body throws condition::retryable | resigns, pauses and stands again; with     | runs again in the next   |
    /// | or condition::outcome_unknown while  | lead_options::fail_with_connection(): as   | term                     |
    /// | leading, e.g. because a commit() met | in the next row                            |                          |
    /// | a lost connection                    |                                            |                          |
    /// | the body throws anything else while  | resigns in the background, fails with the  |                          |
    /// | leading                              | exception                                  |                          |
    /// | the leadership is lost               | waits until the body has really ended;     | a terminal cancellation  |
    /// |                                      | then one of the next two rows              |                          |
    /// | ... and the body returns, or throws  | stands again; drops the value or           | runs again in the next   |
    /// | a zkasio::error or a cancellation    | exception, because the loss may have       | term                     |
    /// |                                      | caused it                                  |                          |
    /// | ... and the body throws anything     | fails with the exception                   |                          |
    /// | else                                 |                                            |                          |
    ///
    /// The code decides: an errc::lock_lost or errc::revoked of another lock, or a zk_errc::no_node beside a write of
    /// another task of the body, counts as "anything else", also if it has error::outcome_unknown(). Only an
    /// errc::timed_out with error::outcome_unknown() counts as a lost connection. The pauses are those of
    /// client_options::retry(). They grow while consecutive terms end with a pause, and start over after a term that
    /// was longer than the session timeout. After the loss of a session in which lead() has stood and led for less than
    /// a session timeout, there is a pause as well, see session_pace.
    ///
    /// *Completes* with what the body returns even if the resignation fails, for example because the client was closed.
    /// *Fails with* what campaign() fails with, except errc::not_connected and all else that is condition::retryable:
    /// then lead() tries again, after the same pauses. So lead() may be called while there is no server. If the body
    /// that ran last has left the outcome of a write unknown, and its exception was dropped because lead() was to stand
    /// again, the error has error::outcome_unknown(). Of earlier bodies nothing is told.
    /// *Cancellation*: is passed on to the body. When the body has ended, lead() resigns in the background, and fails
    /// with asio::error::operation_aborted, or with what else the body has thrown. If the body completes in spite of
    /// the cancellation, its value is returned. error::outcome_unknown() as above.
    /// *Lifetime* of the body: see kept_body.hpp.
    template <class Body>
    asio::awaitable<detail::body_value<Body, leadership&>> lead(Body&& body, lead_options how = lead_options()) const {
        return detail::run_kept(std::forward<Body>(body), &election_detail::lead, zk_, queue_, how);
    }

    /// Tells who leads and every change of leader, also to clients that do not stand for election.
    leader_observer observe() const;

    /// The candidates in the order of the queue, the leader first.
    asio::awaitable<std::vector<contender_info>> candidates() const;

    /// The election's directory, which all participants name.
    const std::string& path() const noexcept { return queue_.path(); }

private:
    client zk_;
    name_scheme names_;
    mutex queue_;
};

}  // namespace zkasio
