#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/election/leader_election.hpp>
#include <zkasio/export.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/loss_reason.hpp>
#include <zkasio/transaction.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace zkasio {

/// A partition that this member owns, as its body sees it. The owner holds the partition's lock: all that lock_guard
/// says of leases applies here. held() is false before another member can own the partition, as far as a client can
/// know; only token() and commit() are proof. Lives for as long as the body; not to be copied.
class held_partition {
public:
    /// For writers of recipes. @param term of the election whose leader owns the partition; must outlive this object.
    held_partition(std::string name, const leadership& term) : name_(std::move(name)), term_(term) {}
    held_partition(const held_partition&) = delete;
    held_partition& operator=(const held_partition&) = delete;

    const std::string& name() const noexcept { return name_; }

    /// Rises each time that the partition gets an owner, the same or another one.
    fencing_token token() const noexcept { return term_.token(); }
    bool held() const noexcept { return term_.held(); }
    boot_clock::time_point held_until() const noexcept { return term_.held_until(); }

    /// *Completes when* the partition is lost, with the reason. (The body is cancelled then, too.)
    asio::awaitable<loss_reason> lost() const { return term_.lost(); }

    /// Applies the transaction if, and only if, this member still owns the partition when the servers apply the
    /// transaction. See lock_guard::commit().
    asio::awaitable<std::vector<step_result>> commit(transaction steps) const {
        return term_.commit(std::move(steps));
    }

private:
    std::string name_;
    const leadership& term_;
};

/// Returns which of the `partitions` are assigned to the member `me`. All members have to use the same function, so
/// that together they take each partition once. The ids of the `members`, and the `partitions`, are sorted.
using partition_assignment =
    std::function<std::vector<std::string>(const std::string& me, const std::vector<std::string>& members,
                                           const std::vector<std::string>& partitions)>;

/// Equal shares, by rendezvous hashing: when a member comes or goes, nearly only those partitions move that have to.
/// (With 300 partitions, of those that could stay less than a tenth move.) The member and the partition whose hashes
/// give the highest number belong together, and so on, until each member has its share; where the shares cannot be
/// equal, some members have one partition more.
///
/// The number of a pair is m(h(member) ^ m(h(partition))), with FNV-1a (64 bits) for h and the last step of splitmix64
/// for m. The cost is the number of partitions times the number of members.
ZKASIO_EXPORT std::vector<std::string> assign_by_rendezvous(const std::string& me,
                                                            const std::vector<std::string>& members,
                                                            const std::vector<std::string>& partitions);

/// kazoo's assignment: the first member takes the first partition, the second one the second, and so on, round-robin.
/// When a member comes or goes, nearly all partitions move.
ZKASIO_EXPORT std::vector<std::string> assign_in_turn(const std::string& me, const std::vector<std::string>& members,
                                                      const std::vector<std::string>& partitions);

class ZKASIO_EXPORT partitioner_options {
public:
    /// A fresh id(): `<host name>-<process id>-<8 hex digits>`.
    partitioner_options();

    /// The id of this member, which no other member may have: two with one id would both take the partitions of one,
    /// one waiting for the other, and those of the second would have no owner. kazoo calls it identifier.
    partitioner_options& id(std::string i) { id_ = std::move(i); return *this; }
    /// Partitions are divided again when no member has come or gone for this time (1 s). The longer the time, the less
    /// often partitions move while many members start, and the later the work of a member that has gone is taken over.
    /// kazoo calls it time_boundary. Throws errc::invalid_argument when the time is negative.
    partitioner_options& settle(any_duration t);
    /// How long partitions are not divided again while members come and go all the time (10 times settle()). After this
    /// time they are divided among those members that have been there for settle(), with a warning in the log, and
    /// again after this time, until the members have settled. So a process that crashes and restarts again and again
    /// does not keep the rest from the work of a member that has gone. Not shorter than settle(). Throws
    /// errc::invalid_argument when the time is negative.
    partitioner_options& settle_at_most(any_duration t);
    /// The body of a partition is cancelled this time before the end of a lease that was not renewed, see
    /// lead_options::stop_margin(). 0 by default.
    partitioner_options& stop_margin(any_duration margin) { stop_margin_ = margin; return *this; }
    /// assign_by_rendezvous() by default. The function may be called on any thread that the work runs on, one call at a
    /// time.
    ///
    /// @param name published in this member's node. While the members' names differ, or some publish none (kazoo's
    /// members), all use assign_in_turn(): so a fleet can be given another assignment one member after another.
    /// assign_by_rendezvous() and assign_in_turn() have the names "rendezvous" and "in turn". A function without a name
    /// is always used, whatever the other members do. Throws errc::invalid_argument for a name of more than 256 bytes.
    partitioner_options& assignment(partition_assignment f, std::string name = {});
    /// The ACL of all nodes (client_options::default_acl()). It must let the other members read the nodes.
    partitioner_options& acl(zkasio::acl a) { acl_ = std::move(a); return *this; }

    const std::string& id() const noexcept { return id_; }
    std::chrono::nanoseconds settle() const noexcept { return settle_; }
    std::chrono::nanoseconds settle_at_most() const noexcept;
    std::chrono::nanoseconds stop_margin() const noexcept { return stop_margin_; }
    const partition_assignment& assignment() const noexcept { return assignment_; }
    const std::string& assignment_name() const noexcept { return assignment_name_; }
    const zkasio::acl& acl() const noexcept { return acl_; }

private:
    std::string id_;
    std::chrono::nanoseconds settle_{std::chrono::seconds(1)};
    std::optional<std::chrono::nanoseconds> settle_at_most_;
    std::chrono::nanoseconds stop_margin_{0};
    partition_assignment assignment_;
    std::string assignment_name_;
    zkasio::acl acl_ = default_acl();
};

/// The state of a partitioner. The names are those of kazoo's SetPartitioner.
enum class partitioner_state {
    idle,        ///< run() does not run
    allocating,  ///< members come and go, or an assigned partition is not owned yet
    acquired,    ///< all assigned partitions are owned, and no other ones
    releasing,   ///< an owned partition is now assigned to another member, and is still being given up
};

ZKASIO_EXPORT std::string_view to_string(partitioner_state s) noexcept;

/// The body of partitioner::run(): runs for each partition that this member owns.
using partition_body = std::function<asio::awaitable<void>(held_partition&)>;

namespace membership_detail {
class partition_table;
ZKASIO_EXPORT asio::awaitable<void> run_partitioner(partition_body body, client zk, std::string path,
                                                    partitioner_options options,
                                                    std::shared_ptr<partition_table> table);
}  // namespace membership_detail

/// Divides named work among all processes that name the same `path`: each partition is worked on by one member at a
/// time, and by some member as long as there is one.
///
/// The members are those of a group. Each member computes which partitions are assigned to it, see
/// partitioner_options::assignment(). It owns an assigned partition when it has acquired the partition's lock. So a
/// partition never has two owners, even while members disagree. When members come or go, only those partitions move
/// whose member changes, see partitioner_options::settle().
///
/// A member that is cut off keeps its partitions from the others until its session has ended and settle() is over. A
/// far member holds up only the partitions that it has to give up, by its own round trips.
///
/// A connection that breaks begins no settle() anew: only members that come or go do. A member takes what is assigned
/// to it as soon as it has read the members on its connection, which takes two round trips, settle() after the last
/// change that it has seen. If no connection lasts until the members are read, what is assigned to it has no owner
/// until one does, or its session ends; after settle_at_most(), or 10 s if that is longer, a warning in the log tells.
///
/// *While members differ*, as in a rolling deployment: each member publishes its assignment's name and a digest of its
/// list of partitions.
///   - Different names: all use assign_in_turn(), see partitioner_options::assignment().
///   - Different lists: a warning in the log tells which members have which. A member that is assigned a partition may
///     not know the partition. So each partition of a list also has one stand-in among the members with this list. If
///     no member has stood for the partition's lock for settle(), the stand-in takes the partition, with a warning, and
///     keeps it until the members change. This costs one watch and one read for each partition of each list, for as
///     long as the lists differ. While this is so, shares need not be equal, and a member may wait for a partition that
///     another one owns. Nobody stands in for members of kazoo, which publish nothing.
///
/// The nodes are those of kazoo's SetPartitioner, and both can share work: `<path>/party` is a ShallowParty, and
/// `<path>/locks/<partition>` a Lock.
///   - kazoo's members give up all partitions at each change, and acquire them again.
///   - kazoo sorts the partitions as Python objects, zkasio sorts their names. To be divided alike, they have to be
///     strings in Python: the numbers 2 and 10 are in another order than "2" and "10".
///   - While kazoo's members take part, all members use assign_in_turn(), which is kazoo's default.
///   - As in kazoo, every child of `<path>/party` is taken for a member. No other node may be there: no member would
///     work on the partitions assigned to it.
///
/// The coroutines of a partitioner keep what they need: the object may be destroyed before they are awaited, and while
/// they run. Copies are the same member. A moved-from partitioner refuses everything with errc::invalid_argument, and
/// is partitioner_state::idle.
class ZKASIO_EXPORT partitioner {
public:
    /// Throws errc::invalid_path; errc::invalid_argument when there is no partition, a partition is no name of a node,
    /// or two have the same name. @param partitions the same ones in all members; see above. @param path a directory
    /// for this partitioner only; created when it is missing.
    partitioner(client zk, std::string path, std::vector<std::string> partitions,
                partitioner_options options = partitioner_options());

    /// Joins the group, and runs `body(held_partition&)`, a coroutine, for each partition that this member owns. The
    /// bodies run concurrently on one strand: the caller's, or one over the caller's executor.
    ///
    /// | what happens                       | run() does                                 | the body sees              |
    /// |------------------------------------|--------------------------------------------|----------------------------|
    /// | this member owns an assigned       | runs the body                              | its held_partition         |
    /// | partition                          |                                            |                            |
    /// | the body returns                   | keeps the partition, without work, until   |                            |
    /// |                                    | it is lost or assigned to another member   |                            |
    /// | the partition is lost, or is now   | waits until the body has really ended, and | a terminal cancellation;   |
    /// | assigned to another member         | gives the partition up; drops a            | runs again as soon as this |
    /// |                                    | cancellation or a zkasio::error of the     | member owns the partition  |
    /// |                                    | body, because the loss may have caused it  | again                      |
    /// | the body throws                    | gives this partition up, and asks for its  | runs again as above        |
    /// | condition::retryable or            | lock again after a pause, see              |                            |
    /// | condition::outcome_unknown: a      | leader_election::lead()                    |                            |
    /// | commit() met with a lost           |                                            |                            |
    /// | connection                         |                                            |                            |
    /// | the body throws anything else      | cancels all other bodies; when they have   | the other bodies: a        |
    /// |                                    | ended, fails with that exception           | terminal cancellation      |
    ///
    /// If one of run()'s own operations fails with condition::retryable or error::outcome_unknown(), this also ends no
    /// more than the body of that partition. A body for which such an error is the end throws an exception of its own.
    ///
    /// *Completes* never.
    /// *Fails with* what a body throws (see the table); what the assignment throws; errc::invalid_argument when the
    /// assignment returns a name that is no partition, or when the partitioner runs already; what operations fail with
    /// and is not condition::retryable. Before that, all other bodies are cancelled and have ended. The member leaves
    /// in the background. As lead(), run() tells with error::outcome_unknown() of a write of a partition's last body,
    /// but not if the partition was taken from this member meanwhile: a body that has to know catches the exception.
    /// *Cancellation*: all bodies are cancelled. When they have ended, run() fails with asio::error::operation_aborted,
    /// or with what else a body has thrown. The member leaves in the background; client::idle() waits for that.
    /// *On session loss*: run() goes on in the next session.
    /// *Lifetime* of the body: see kept_body.hpp.
    template <class Body>
    asio::awaitable<void> run(Body&& body) const {
        static_assert(std::is_void_v<detail::body_value<Body, held_partition&>>,
                      "the body of a partition takes a held_partition&, and returns asio::awaitable<void>");
        return detail::run_kept(std::forward<Body>(body), &membership_detail::run_partitioner, zk_, path_, options_,
                                table_);
    }

    /// On any thread, as owned().
    partitioner_state state() const noexcept;
    /// The owned partitions, sorted: their bodies run, or have returned.
    std::vector<std::string> owned() const;

    const std::string& path() const noexcept { return path_; }
    const std::string& id() const noexcept { return options_.id(); }

private:
    client zk_;
    std::string path_;
    partitioner_options options_;
    std::shared_ptr<membership_detail::partition_table> table_;
};

}  // namespace zkasio
