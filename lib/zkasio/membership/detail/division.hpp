#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/membership/group.hpp>
#include <zkasio/membership/partitioner.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

/// How the members of a partitioner agree on who works on what, also while they are of different versions. The rules:
///
///   - D1: each member publishes the name of its assignment, and a digest of its list of partitions, in its node.
///   - D2: while the names differ, or a member publishes none (kazoo's), each member uses assign_in_turn(), as
///     kazoo's do. A function without a name is used in any case: it is the caller who knows that
///     all members have it.
///   - D3: a member whose list differs may not know a partition that it is assigned by this member's list. So each
///     partition also has one stand-in among the members that have the same list. The stand-in works on the partition
///     if no member stands for its lock.
///   - D4: nobody stands in for a member that publishes nothing: kazoo's members acquire all their locks before they
///     work, and may be slow to do so.
namespace zkasio::membership_detail {

/// What a member publishes (D1).
struct member_plan {
    std::string assignment;  ///< its name; "": a function without a name
    std::size_t partitions = 0;
    std::uint64_t digest = 0;  ///< of the names of the partitions

    friend bool operator==(const member_plan&, const member_plan&) = default;
};

/// @param partitions sorted
member_plan plan_of(const partitioner_options& how, const std::vector<std::string>& partitions);
/// The data of a member's node.
std::string to_text(const member_plan& plan);
/// Nothing: the data of a member that publishes no plan.
std::optional<member_plan> parse_plan(std::string_view data);

struct planning_member {
    std::string id;
    std::optional<member_plan> plan;
};

/// What follows for one member.
struct division {
    std::vector<std::string> assigned;
    std::set<std::string> stands_in_for;  ///< D3: none of `assigned`
    std::string difference;               ///< for the log: which lists there are, and whose; "": one
};

/// @param members sorted by id. @param partitions sorted. Throws what the assignment throws.
division divide(const partitioner_options& how, const std::vector<planning_member>& members,
                const std::vector<std::string>& partitions);

/// Decides when partitions are to be divided, and among which members: once the members have been the same for
/// `settle`. If they come and go all the time, partitions are divided at the latest `at_most` after the first change,
/// among those members that have been there for `settle`: a process that crashes again and again is not among these.
/// Only the members count: a connection that is lost, and shows the same members when it is back, begins nothing anew.
/// No input, no output, no waiting.
class member_history {
public:
    using duration = boot_clock::duration;
    using time_point = boot_clock::time_point;

    /// @param settle not negative. @param at_most if below `settle`, `settle` is taken.
    member_history(duration settle, duration at_most) : settle_(settle), at_most_(std::max(settle, at_most)) {
        assert(settle >= duration::zero());
    }

    /// Takes the members of another view, whether or not it is current.
    void see(const group_view& view, time_point now);

    /// When to divide, unless another view comes before. time_point::max(): never.
    time_point due() const;
    /// Whether at `now` the members have been the same for long enough.
    bool settled_at(time_point now) const;
    /// The ids of the members among which to divide at `now`, sorted.
    std::vector<std::string> members_at(time_point now) const;

    /// Partitions were divided, or could not be divided. Unless settled, the next time is up to `at_most` later.
    /// @param now not before due()
    void tried(time_point now);

private:
    time_point settled_at() const;

    struct member {
        std::string id;
        time_point since;
    };
    const duration settle_, at_most_;
    std::vector<member_info> seen_;
    std::map<std::string, member> members_;  // by the node: a member that has gone and come again has another node
    time_point changed_{}, first_{};         // the last change; the first since the last division
    bool divided_ = true;                    // nothing has changed since the last division
};

}  // namespace zkasio::membership_detail
