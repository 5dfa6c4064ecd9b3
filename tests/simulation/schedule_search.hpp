#pragma once

#include "simulation/scheduler.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <vector>

namespace zkasio::test {

/// A depth-first search over the choices of a scheduler, one run after another (stateless search).
class schedule_search : public scheduler {
public:
    /// Before each run.
    virtual void begin() noexcept = 0;
    /// After a run: whether it differs from an earlier one only in steps that commute.
    virtual bool end() = 0;
    /// The steps of the run.
    virtual std::size_t depth() const noexcept = 0;
    /// Prepares another run. False: all were run.
    virtual bool next() = 0;
};

/// Every order of dependent steps.
std::unique_ptr<schedule_search> search_every_order();

/// Only schedules that are delayed so many times at most.
std::unique_ptr<schedule_search> search_few_delays(std::size_t most);

/// The index of a step that was possible in an earlier run as well.
inline std::size_t index_of(const std::vector<turn>& possible, int step) {
    const auto at = std::find_if(possible.begin(), possible.end(), [&](const turn& t) { return t.step == step; });
    if (at == possible.end()) throw std::logic_error("the same choices do not lead to the same steps");
    return static_cast<std::size_t>(at - possible.begin());
}

}  // namespace zkasio::test
