#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/coroutines/kept_body.hpp>
#include <zkasio/export.hpp>
#include <zkasio/membership/held_partition.hpp>
#include <zkasio/membership/partitioner_options.hpp>

#include <asio/awaitable.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace zkasio {

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
/// far member holds up only the partitions that it has to give up, by its own round trips. A member whose connection
/// never lasts as long as settle() takes nothing: what is assigned to it has no owner until its connection lasts, or
/// its session ends.
///
/// *While members differ*, as in a rolling deployment: each member publishes its assignment's name and a digest of its
/// list of partitions.
///   - Different names: all use assign_in_turn(), see partitioner_options::assignment().
///   - Different lists: a warning in the log tells which members have which. A member that is assigned a partition may
///     not know the partition. So each partition of a list also has one stand-in among the members with this list. If
///     no member has stood for the partition's lock for settle(), the stand-in takes the partition, with a warning, and
///     keeps it until the members change. This costs one watch and one read for each partition of each list, for as
///     long as the lists differ. While this is so, shares need not be equal, and a member may wait for a partition that
///     another one owns. Nobody stands in for members of kazoo and of zkasio 0.2, which publish nothing.
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
