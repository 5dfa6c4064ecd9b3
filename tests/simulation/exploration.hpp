#pragma once

#include "simulation/scheduler.hpp"
#include "simulation/simulation.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace zkasio::test {

/// What is run; and where a search ends that has not run all of it.
struct exploration_limits {
    /// Only schedules with so many delays at most. Without a delay the parties take turns: one takes its steps until it
    /// has none, then the next one. A delay passes over one step. What may happen at any time costs no delay.
    std::optional<std::size_t> delays;
    std::size_t schedules = static_cast<std::size_t>(-1);
    std::chrono::seconds time = std::chrono::hours(24);
};

struct exploration {
    std::size_t schedules = 0;  ///< that were run to their end, no two of which differ only in steps that commute
    std::size_t redundant = 0;  ///< that were begun, and turned out to be such
    std::size_t longest = 0;    ///< in steps
    bool complete = false;      ///< there are no more
    std::string violated;       ///< empty: nothing
    std::string log;            ///< of a simulation in which it was
};

/// Runs a program once for each order of its steps, but for orders that differ only in steps that commute; until one
/// fails, or a limit is reached.
/// @param run the program, which asks the scheduler before each of its steps; returns what was violated, or nothing.
exploration explore_runs(const std::function<std::string(scheduler&)>& run, const exploration_limits& most);

/// explore_runs() of a simulation.
exploration explore(const std::function<void(simulation&)>& scenario, const exploration_limits& most);

}  // namespace zkasio::test
