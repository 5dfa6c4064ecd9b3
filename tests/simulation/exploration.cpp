#include "simulation/exploration.hpp"

#include "simulation/schedule_search.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

namespace zkasio::test {
exploration explore_runs(const std::function<std::string(scheduler&)>& run, const exploration_limits& most) {
    const auto end = std::chrono::steady_clock::now() + most.time;
    exploration result;
    const std::unique_ptr<schedule_search> choices =
        most.delays ? search_few_delays(*most.delays) : search_every_order();
    do {
        choices->begin();
        result.violated = run(*choices);
        if (!result.violated.empty()) {
            choices->begin();
            const std::string repeated = run(*choices);
            if (repeated != result.violated) result.violated += "; BUT WHEN REPEATED: " + repeated;
            return result;
        }
        result.longest = std::max(result.longest, choices->depth());
        ++(choices->end() ? result.redundant : result.schedules);
        if (!choices->next()) {
            result.complete = true;
            return result;
        }
    } while (result.schedules + result.redundant < most.schedules && std::chrono::steady_clock::now() < end);
    return result;
}

exploration explore(const std::function<void(simulation&)>& scenario, const exploration_limits& most) {
    std::string log;
    bool failed = false;
    const auto run = [&](scheduler& by) {
        simulation s(by, failed ? simulation::logging::on : simulation::logging::off);
        std::string violated;
        try {
            scenario(s);
        } catch (const std::exception& e) {
            violated = *e.what() ? e.what() : "an exception without words";
        }
        if (failed) log = s.tail();
        failed = !violated.empty();
        return violated;
    };
    exploration result = explore_runs(run, most);
    result.log = std::move(log);
    return result;
}

}  // namespace zkasio::test
