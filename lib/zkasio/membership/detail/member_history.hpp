#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/membership/group_observer.hpp>

#include <algorithm>
#include <cassert>
#include <map>
#include <string>
#include <vector>

namespace zkasio::membership_detail {

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
