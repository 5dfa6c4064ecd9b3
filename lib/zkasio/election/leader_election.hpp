#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/election/lead_options.hpp>
#include <zkasio/election/leader_election_options.hpp>
#include <zkasio/election/leader_observer.hpp>
#include <zkasio/election/leadership.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/acquire_options.hpp>
#include <zkasio/locks/contender_info.hpp>
#include <zkasio/locks/mutex.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio {

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
    /// was longer than the session timeout.
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
