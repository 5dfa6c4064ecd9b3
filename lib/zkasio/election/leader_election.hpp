#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/election/lead_options.hpp>
#include <zkasio/election/leader_election_options.hpp>
#include <zkasio/election/leader_observer.hpp>
#include <zkasio/election/leadership.hpp>
#include <zkasio/export.hpp>
#include <zkasio/kept_body.hpp>
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

/// What runs in each term of a leader.
using lead_body = std::function<asio::awaitable<void>(leadership&)>;

namespace election_detail {
ZKASIO_EXPORT asio::awaitable<void> lead(lead_body body, client zk, mutex queue, lead_options how);
}

/// An election among all processes that name the same `path`: one of the candidates leads, and when it resigns or is
/// lost, the one that has stood for the longest time follows.
///
/// Candidates are in line for a fair lock, and who holds it leads: everything that mutex says of queues, hand-over and
/// leases is true here. The nodes are those of Curator's LeaderLatch: Java and C++ services can stand in one election;
/// see leader_election_options::names() for others.
///
/// With client_options::suspension() at suspension_policy::lose a leader whose connection is lost ends its term at
/// once, instead of with its lease.
///
/// What the members return takes along what it needs: the object may be gone before it is awaited, and while it runs.
/// One object may be used by any number of coroutines at once, on any executors; each campaign() is a candidate of its
/// own. An object that was moved from refuses everything with errc::invalid_argument. Copies name the same election.
class ZKASIO_EXPORT leader_election {
public:
    /// @param path a directory of its own; created as a container when it is missing. Throws errc::invalid_path.
    leader_election(client zk, std::string path, leader_election_options options = leader_election_options());

    /// Stands for election.
    ///
    /// *Completes when* we are elected. When the session expires before that, stands again with the next one, at the
    /// end of the line: what acquire_options::survive_expiry() does is always done.
    /// *Fails with* what operations fail with; errc::not_connected when there is no connection for
    /// client_options::connection_timeout; errc::foreign_child; errc::invalid_argument for an
    /// acquire_options::owner(): a term has one end.
    /// *Cancellation*: leaves no node and no watch behind, and nobody else waits for us.
    asio::awaitable<leadership> campaign(acquire_options how = acquire_options()) const;

    /// As campaign(), but returns nothing instead of waiting for another candidate, see lockable::try_acquire(); or
    /// when the time is over, see lockable::try_acquire_for().
    asio::awaitable<std::optional<leadership>> try_campaign(acquire_options how = acquire_options()) const;
    asio::awaitable<std::optional<leadership>> try_campaign_for(any_duration limit,
                                                                acquire_options how = acquire_options()) const;
    asio::awaitable<std::optional<leadership>> try_campaign_until(boot_clock::time_point limit,
                                                                  acquire_options how = acquire_options()) const;

    /// Stands for election, and whenever we are elected, runs `body(leadership&)`, a coroutine, for as long as we lead.
    /// A body is written for one term and may run many times. What follows when it ends:
    ///
    /// | the body                                                | lead()                                          |
    /// |---------------------------------------------------------|-------------------------------------------------|
    /// | returns while we lead, or when it has resigned itself   | resigns, and completes with what was returned;  |
    /// |                                                         | with lead_options::requeue(): stands again      |
    /// | throws condition::retryable or error::outcome_unknown() | resigns, pauses and stands again, unless        |
    /// | while we lead: a commit() met with a lost connection    | lead_options::fail_with_connection() is set     |
    /// | throws anything else while we lead                      | resigns in the background, and fails with that  |
    /// | is cancelled since the leadership is lost; returns, or  | stands again; what was returned or thrown is    |
    /// | throws a zkasio::error or a cancellation                | dropped, since a lost session has many faces    |
    /// | the same, and throws anything else                      | fails with that                                 |
    ///
    /// When the leadership is lost, the body receives a terminal cancellation, and we do not stand again before it has
    /// really ended. The pauses are those of client_options::retry(); they grow while one term after another ends so,
    /// and begin anew after a term that was longer than the session timeout.
    ///
    /// *Completes* with what the body returns also when the resignation fails, because the client was closed meanwhile
    /// for one.
    /// *Fails with* what campaign() fails with, but for errc::not_connected and whatever else is condition::retryable:
    /// then it tries again, after the pauses of client_options::retry(). So it may be called while there is no server.
    /// *Cancellation*: is passed on to the body; when it has ended, we resign in the background, and this fails with
    /// asio::error::operation_aborted, or with what else the body has thrown. If the body has completed all the same,
    /// its value is returned.
    /// *Lifetime* of the body: see kept_body.hpp.
    template <class Body>
    asio::awaitable<detail::body_value<Body, leadership&>> lead(Body&& body, lead_options how = lead_options()) const {
        return detail::run_kept(std::forward<Body>(body), &election_detail::lead, zk_, queue_, how);
    }

    /// Tells who leads and every change of that, for those who do not stand, too.
    leader_observer observe() const;

    /// Who leads and who stands, in order, the leader first.
    asio::awaitable<std::vector<contender_info>> candidates() const;

    /// Of the directory that all who take part name.
    const std::string& path() const noexcept { return queue_.path(); }

private:
    client zk_;
    name_scheme names_;
    mutex queue_;
};

}  // namespace zkasio
