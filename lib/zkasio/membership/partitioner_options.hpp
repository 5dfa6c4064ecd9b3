#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zkasio {

/// Which of the `partitions` are for the member `me`. All members have to use the same function of the same arguments,
/// so that together they take each partition once. The ids of the `members`, and the `partitions`, are sorted.
using partition_assignment =
    std::function<std::vector<std::string>(const std::string& me, const std::vector<std::string>& members,
                                           const std::vector<std::string>& partitions)>;

/// kazoo's: the first member takes the first partition, the second one the second, and so on round and round.
ZKASIO_EXPORT std::vector<std::string> assign_in_turn(const std::string& me, const std::vector<std::string>& members,
                                                      const std::vector<std::string>& partitions);

class ZKASIO_EXPORT partitioner_options {
public:
    /// A fresh id(): `<host name>-<process id>-<8 hex digits>`.
    partitioner_options();

    /// Of this member; no other may have the same: both would take the partitions of one, one of them waiting for the
    /// other, and nobody those of the other. kazoo calls it identifier.
    partitioner_options& id(std::string i) { id_ = std::move(i); return *this; }
    /// How long no member must have come or gone before partitions are divided anew (1 s). The longer, the less often
    /// they move while many members start; the later is the work of one that has gone taken over. kazoo calls it
    /// time_boundary. Throws errc::invalid_argument when it is negative.
    partitioner_options& settle(any_duration t);
    /// How long partitions are not divided anew while members come and go all the time (10 times settle()). Then they
    /// are divided among those members that have been there for settle(), with a warning in the log, and again after
    /// this time, until the members have settled: one process that crashes and is started again and again does not keep
    /// the work of another one that has gone from the rest. Not shorter than settle(). Throws errc::invalid_argument
    /// when it is negative.
    partitioner_options& settle_at_most(any_duration t);
    /// assign_in_turn() by default. May be called on any thread that the work runs on, one call at a time.
    partitioner_options& assignment(partition_assignment f) { assignment_ = std::move(f); return *this; }
    /// Of all nodes (open_acl()). Must let the other members read them.
    partitioner_options& acl(zkasio::acl a) { acl_ = std::move(a); return *this; }

    const std::string& id() const noexcept { return id_; }
    std::chrono::nanoseconds settle() const noexcept { return settle_; }
    std::chrono::nanoseconds settle_at_most() const noexcept;
    const partition_assignment& assignment() const noexcept { return assignment_; }
    const zkasio::acl& acl() const noexcept { return acl_; }

private:
    std::string id_;
    std::chrono::nanoseconds settle_{std::chrono::seconds(1)};
    std::optional<std::chrono::nanoseconds> settle_at_most_;
    partition_assignment assignment_ = &assign_in_turn;
    zkasio::acl acl_ = open_acl();
};

}  // namespace zkasio
