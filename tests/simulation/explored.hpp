#pragma once

#include "simulation/simulation.hpp"

#include <functional>
#include <string>
#include <vector>

namespace zkasio::test {

/// What a small scenario consists of, all of whose schedules are run.
struct explored_plan {
    enum class trouble {
        drop_0,    ///< the connection of client 0 breaks
        drop_1,
        expire_0,  ///< the session of client 0 ends
        expire_1,
        delete_first,   ///< an operator deletes the oldest node that says who waits or holds
        delete_second,
    };
    int users = 2;  ///< of two clients, in turn
    std::vector<trouble> troubles;

    bool has(trouble t) const;
    bool operators() const { return has(trouble::delete_first) || has(trouble::delete_second); }
    bool expiries() const { return has(trouble::expire_0) || has(trouble::expire_1); }
};

/// Nodes that are there from the beginning.
void make_nodes(simulation& s, const std::vector<std::string>& paths);

/// Two clients with a connection. From now on, the order of all steps is explored, of the troubles, too.
/// @param delete_node deletes the n-th node, if there are so many.
/// @param prepare what the clients do before.
void begin_exploring(simulation& s, const explored_plan& p, std::function<void(std::size_t n)> delete_node,
                     const std::function<void()>& prepare = [] {});

/// Runs the schedules of `scenario` for each combination of $ZKASIO_EXPLORE_FAULTS (1) troubles, with
/// $ZKASIO_EXPLORE_USERS (2) users; of each, $ZKASIO_EXPLORE_SCHEDULES, or $ZKASIO_SIM_SEEDS, or 300 at most. With
/// $ZKASIO_EXPLORE_SECONDS all, and it is a failure if there are more after that time. Only combinations whose printed
/// names contain $ZKASIO_EXPLORE_ONLY are run, and, if given, only schedules with $ZKASIO_EXPLORE_DELAYS delays at most
/// (exploration_limits::delays). $ZKASIO_EXPLORE names what else is a choice: "late" turns of the users'
/// executors, answers that come "together". Prints how many there are.
void run_all_schedules(const std::string& name,
                       const std::function<void(simulation&, const explored_plan&)>& scenario);

}  // namespace zkasio::test
