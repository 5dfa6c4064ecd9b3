#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/kept_body.hpp>
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

/// Where a partitioner is. The names are those of kazoo's SetPartitioner.
enum class partitioner_state {
    idle,        ///< nothing runs
    allocating,  ///< members come and go, or partitions that are for us are not ours yet
    acquired,    ///< all that are for us are ours, and nothing else
    releasing,   ///< some that are for others now are still being given up
};

ZKASIO_EXPORT std::string_view to_string(partitioner_state s) noexcept;

/// What runs for each partition that is ours.
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
/// Who the members are says a group, and each knows by itself which partitions are for it, see
/// partitioner_options::assignment(). Whoever is to have a partition waits for its lock, so that it never has two
/// owners, even while members disagree. When members come or go, only those partitions move whose member changes, see
/// partitioner_options::settle().
///
/// The nodes are those of kazoo's SetPartitioner, and both can share work: `<path>/party`, a ShallowParty, and
/// `<path>/locks/<partition>`, a Lock. kazoo's members give everything up at each change, and take it again. They sort
/// the partitions as Python objects, and we sort their names: to be divided alike, they have to be strings there (the
/// numbers 2 and 10 are in another order than "2" and "10"). As kazoo, this takes whatever is in `<path>/party` for a
/// member: nothing else may be there, or the partitions that are for it are worked on by nobody.
///
/// What the members return takes along what it needs: the object may be gone before it is awaited, and while it runs.
/// Copies are the same member. One that was moved from refuses everything with errc::invalid_argument, and is
/// partitioner_state::idle.
class ZKASIO_EXPORT partitioner {
public:
    /// Throws errc::invalid_path; errc::invalid_argument when there is no partition, one is no name of a node, or there
    /// are two of one name. @param path a directory of its own; created when it is missing.
    partitioner(client zk, std::string path, std::vector<std::string> partitions,
                partitioner_options options = partitioner_options());

    /// Joins, and runs `body(held_partition&)`, a coroutine, for each partition that is ours, side by side on one
    /// strand: the caller's, or one over the caller's executor.
    ///
    /// When a partition is lost, or is for another member now, its body receives a terminal cancellation, and when it
    /// has really ended, the partition is given up. If it is still for us, the body runs again as soon as we have got
    /// it again. A body that has returned is done: the partition stays ours, without work, until that happens. What a
    /// body throws when it was cancelled so is dropped if it is a cancellation or a zkasio::error, since a lost session
    /// has many faces.
    ///
    /// *Completes* never. *Fails with* what a body throws otherwise, what the assignment throws, errc::invalid_argument
    /// for names from it that are no partitions, or when the partitioner runs already; with what operations fail with
    /// and is not condition::retryable: then all other bodies are cancelled and have ended, and we leave in the
    /// background.
    /// What is condition::retryable or error::outcome_unknown() ends no more than that body, also when a body throws it
    /// (a commit() that met with a lost connection): the partition is given up, and after a pause its lock is asked for
    /// again, see leader_election::lead(). A body for which such an error is the end throws one of its own.
    /// *Cancellation*: the same with asio::error::operation_aborted, or with what else a body has thrown;
    /// client::idle() waits until we have left. *On session loss* it goes on in the next one.
    /// *Lifetime* of the body: see kept_body.hpp.
    template <class Body>
    asio::awaitable<void> run(Body&& body) const {
        static_assert(std::is_void_v<detail::body_value<Body, held_partition&>>,
                      "the body of a partition returns asio::awaitable<void>");
        return detail::run_kept(std::forward<Body>(body), &membership_detail::run_partitioner, zk_, path_, options_,
                                table_);
    }

    /// On any thread, as owned().
    partitioner_state state() const noexcept;
    /// The partitions that are ours, sorted: whose bodies run, or have run.
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
