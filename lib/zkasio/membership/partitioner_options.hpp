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
    /// members, and those of zkasio 0.2), all use assign_in_turn(): so a fleet can be given another assignment one
    /// member after another. assign_by_rendezvous() and assign_in_turn() have the names "rendezvous" and "in turn". A
    /// function without a name is always used, whatever the other members do. Throws errc::invalid_argument for a name
    /// of more than 256 bytes.
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

}  // namespace zkasio
