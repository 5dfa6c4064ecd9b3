#pragma once

#include "simulation/lock_scenario.hpp"
#include "simulation/queue_checker.hpp"

namespace zkasio::test {

inline const std::string lock_directory = "/locks/simulated";

/// Of one lock that has a queue, `lock_directory`.
class queue_scenario final : public lock_scenario {
public:
    /// @param lock outlives this.
    queue_scenario(simulation& s, const lock_under_test& lock);

    using lock_scenario::contend;
    /// One attempt: waits for its turn, holds for `hold` steps, releases.
    void contend(int client, lock_kind kind = lock_kind::exclusive, std::size_t hold = 3);
    /// Makes the directory, whose next child gets this number.
    void begin_with(std::int32_t sequence);

    queue_checker& checked;

private:
    void before_random_run() override;
};

}  // namespace zkasio::test
