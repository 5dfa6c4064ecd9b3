#pragma once

#include "lock_view.hpp"

#include <zkasio/clock.hpp>
#include <zkasio/types.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace zklock {

/// The nodes of the directory in which a lock's grants are counted: `path` itself, of a semaphore its leases.
struct node_counts {
    std::int64_t created = 0;  ///< since the directory exists
    std::int64_t present = 0;
    std::int64_t directory = 0;  ///< its czxid: another directory may have the same name
};
node_counts counts_of(const zkasio::node_stat& directory) noexcept;

/// Counts the grants of one lock that is looked at again and again, also those between two looks: servers number the
/// nodes of a directory, so that a contender that came and went in between has left a gap. A contender that gave up
/// between two looks in which the lock changed hands counts as a grant. Grants of a cohort_mutex in its own process
/// have no nodes, and are not seen.
class grant_meter {
public:
    using time_point = zkasio::boot_clock::time_point;

    /// Takes what one look has shown, and adds to `v` the grants, and how long each holder has held.
    /// @param counted read before `v` was; none: not known at this look.
    void look(lock_view& v, const std::optional<node_counts>& counted, time_point now);

    /// Between the last look and the next one, the lock may have changed hands long before the next look.
    void missed() noexcept { missed_ = true; }

private:
    struct holding {
        time_point since;
        bool at_least = false;  // since some time before that
    };

    std::int64_t granted_in_queue(const lock_view& v, std::int64_t created);
    std::int64_t granted_in_leases(const lock_view& v, const node_counts& counted);
    void note_holders(lock_view& v, time_point now);
    grant_rate rate(time_point now);

    bool looked_ = false, missed_ = false;
    time_point begin_;
    std::int64_t directory_ = 0;       // at the last look that has told
    std::int64_t created_ = 0;         // at the last look
    std::set<std::int64_t> waiting_;   // numbers of those who waited then
    std::set<std::int64_t> exclusive_; // tokens of those who held it alone then
    std::optional<std::int64_t> leases_granted_;
    std::map<std::int64_t, holding> holders_;  // by token
    std::int64_t grants_ = 0;
    std::deque<std::pair<time_point, std::int64_t>> recent_;  // grants_, in the last seconds
};

}  // namespace zklock
