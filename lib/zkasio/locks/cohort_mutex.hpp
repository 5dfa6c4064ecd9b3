#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/contender_info.hpp>
#include <zkasio/locks/lock_options.hpp>
#include <zkasio/locks/lockable.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace zkasio {

namespace lock_detail {
struct cohort_spec;
}

class ZKASIO_EXPORT cohort_mutex_options : public queue_options<cohort_mutex_options> {
public:
    cohort_mutex_options() {}
    /// While another process waits, the cohort takes at most so many turns (64) before its place goes back to the end
    /// of the queue. Throws errc::invalid_argument for 0.
    cohort_mutex_options& turns(std::uint64_t most);
    /// While another process waits, the cohort gives no turn when it has had the lock for this long (20 ms). A turn
    /// that is being taken is not ended. Throws errc::invalid_argument for a negative duration.
    cohort_mutex_options& tenure(any_duration most);
    /// How long the cohort keeps the lock (1 s) while none of its coroutines wants it. It is given back earlier when
    /// another contender appears, when revoke() asks for it, and when half of the client_options::ephemeral_budget() is
    /// used. 0: given back at once. client::idle() does not wait for the end of this time. Throws
    /// errc::invalid_argument for a negative duration.
    cohort_mutex_options& linger(any_duration time);

    std::uint64_t turns() const noexcept { return turns_; }
    std::chrono::nanoseconds tenure() const noexcept { return tenure_; }
    std::chrono::nanoseconds linger() const noexcept { return linger_; }

private:
    std::uint64_t turns_ = 64;
    std::chrono::nanoseconds tenure_ = std::chrono::milliseconds(20);
    std::chrono::nanoseconds linger_ = std::chrono::seconds(1);
};

/// A mutual-exclusion lock for many coroutines of few processes. Shares the lock with every `mutex` of the same path
/// and name_scheme, and with Curator, kazoo and go-zk.
///
/// All cohort_mutex objects of one client that name the same path with the same turns(), tenure() and linger() are a
/// *cohort*: it has one node in the queue of the lock, its place, however many coroutines wait; data() and acl() are
/// those of the object that was used first. While the place has the
/// lock, the coroutines take turns, first come, first served, without a request. When no coroutine wants the lock, the
/// place lingers, so that the next acquire() needs no request either (lock cohorting: Dice, Marathe, Shavit, PPoPP
/// 2012; cached locks: VMS DLM, GFS2).
///
/// *Fairness between processes*: while another contender waits (another process, or a `mutex` of this client), the
/// cohort's place goes back to the end of the queue after turns() or tenure(). Places are first come, first served. So
/// a cohort waits for those that are in the queue before its place: for one tenure of each other cohort at most, and
/// for the turn that ends this tenure; and for each waiter of a `mutex`, of which another process may have many. A
/// coroutine that arrives in a cohort with its place at the front can be served before coroutines of other processes
/// that came earlier. A far cohort has its tenures, too, each longer by the round trips of its place. A process that is
/// alone does not give its place up.
///
/// An idle place has a watch on the directory, and is given back when another contender appears: the contender waits
/// for one notification, one listing and one removal. A child with a foreign name counts as a contender, too, unless
/// name_scheme::allow_foreign_children() says otherwise: it may be that of a program that names its nodes differently.
///
/// *Beside contenders that only try*: a try_acquire() of another contender is refused by an idle place, too, but the
/// place is then given back, and for a minute no place of this cohort is kept while nobody wants it. So the next try
/// within this minute finds the lock free, unless a coroutine has its turn. (A far client's try may still be in the
/// queue when the place looks, and then is as one that waits: for a minute, no place is kept every eighth time.) To get
/// the lock at once, use try_acquire_for() with some round trips.
///
/// *Tokens*: the turns of one tenure have the same node, and so the same fencing_token::value(); compare tokens as a
/// whole, with fencing_token::turn(). See docs/sessions.md.
///
/// *On session loss* the coroutine that has its turn loses its guard, and the waiting ones end as those of a `mutex`.
/// Waiting coroutines have no node: operators cannot see or delete them, and acquire_options::on_position() tells
/// nothing. If an operator deletes the place's node, the guard that has its turn is lost, and the cohort queues again.
/// If the connection is silent at that time, the client does not hear of it: the turn under way is held() until its
/// lease ends, as a guard of a `mutex`, while another contender has the lock already. New turns begin only while the
/// node was checked by a heartbeat, or by another write of the session, that was sent no longer ago than 5/16 of the
/// session timeout (a sixteenth more than client_options::lease_renewal(), a quarter): turns wait for one that is
/// overdue, also on a link that is slower than a sixteenth.
///
/// If the place cannot get in line (the directory is refused, or has foreign children), all coroutines that wait fail
/// with that error, as each of them would with a `mutex`. The next acquire() tries again.
///
/// revoke() of the place's node reaches the guard that has its turn. Whether or not its owner looks, the place goes
/// back to the end of the queue when that guard is released, and at once if no coroutine wants it. A request is noticed
/// when the place has been kept for a quarter of the session timeout, or earlier by a guard that looks. release()
/// completes at once, except when the place is given back with it.
///
/// Otherwise as `mutex`: lease, commit(), would_deadlock, lock_owner (an owner may enter a lock again that it holds as
/// a `mutex` or a `cohort_mutex`).
class ZKASIO_EXPORT cohort_mutex final : public lockable {
public:
    /// @param path a directory of its own; created as a container when it is missing. Throws errc::invalid_path.
    cohort_mutex(client zk, std::string path, cohort_mutex_options options = cohort_mutex_options());

    /// The holder and the waiters among the processes, in order, the holder first: one for each cohort.
    asio::awaitable<std::vector<contender_info>> contenders() const;

protected:
    lock_attempt attempts(acquire_options how) const override;
    asio::awaitable<lock_guard> wait_for_lock(acquire_options how) const override;
    std::exception_ptr refusal() const override;

private:
    std::shared_ptr<const lock_detail::cohort_spec> spec_;
};

}  // namespace zkasio
