#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zkasio::test {

/// A step that is possible next.
struct turn {
    int step;   ///< differs from all others that are possible, and stays the same while it is possible
    int party;  ///< who takes it; a party may have the choice among several
    bool any_time = false;  ///< a fault or a cancellation, which nothing waits for
};

/// What a step had to do with. Steps that have nothing in common can be taken in either order, with the same result.
struct footprint {
    std::uint32_t clients = 0;  ///< bit n: the state of client n
    std::uint32_t answers = 0;  ///< bit n: the order of what client n is told, or whether its requests are served
    bool seen_by_all = false;   ///< what users of all clients are told, or what a check compares with the whole tree
    /// "n/a": the node /a; "c/a": the names of its children; "u/a": what users are told of it.
    std::vector<std::string> changed;
    std::vector<std::string> read;  ///< what the outcome of the step depends on
    int cause = -1;  ///< the step that has made this one possible; -1: none of those that were chosen
};

/// Whether the order of two steps matters.
bool dependent(const footprint& a, const footprint& b) noexcept;

/// Decides what happens next in a simulation.
class scheduler {
public:
    virtual ~scheduler() = default;
    /// Returns an index.
    virtual std::size_t choose(const std::vector<turn>& possible) = 0;
    /// The chosen step was taken.
    virtual void taken(footprint what) = 0;
    /// In this run, the steps that follow may come in any order. One of them may still be tried before a step that was
    /// taken already.
    virtual void rest_in_any_order() {}
};

}  // namespace zkasio::test
