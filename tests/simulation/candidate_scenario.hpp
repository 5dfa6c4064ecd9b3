#pragma once

#include "simulation/candidate_checker.hpp"
#include "simulation/lock_scenario.hpp"
#include "simulation/passing_time.hpp"
#include "simulation/simulation.hpp"

#include <cstddef>
#include <memory>
#include <set>
#include <string>

namespace zkasio::test {

/// Candidates of some clients stand, are told to step down by their programs and by others, and are closed or
/// destroyed, while readers hear of their terms, and bodies run in them.
class candidate_scenario {
public:
    explicit candidate_scenario(simulation& s);
    ~candidate_scenario();

    /// @param silences now and then nothing passes between a client and its server for a while, as with a process that
    /// is suspended; its session may end then.
    void run_at_random(const faults& f, bool silences = false);
    /// Time passes, and clients are cut off, for up to twice the length of a session.
    void run_in_time();

private:
    using candidate_ptr = candidate_checker::candidate_ptr;
    /// One call of run().
    struct run_call {
        std::set<std::int64_t> terms;  // in which its body has begun
        bool has_thrown = false;
    };
    using run_ptr = std::shared_ptr<run_call>;

    asio::awaitable<void> program(int client, std::size_t candidates);
    asio::awaitable<void> stand(candidate_ptr who);
    asio::awaitable<void> ask(candidate_ptr who);
    asio::awaitable<void> read(candidate_ptr who);
    asio::awaitable<void> work(candidate_ptr who, run_ptr r, const leadership& leader);
    asio::awaitable<void> run(candidate_ptr who, run_ptr r);
    asio::awaitable<void> run_bodies(candidate_ptr who);
    asio::awaitable<void> step_down(candidate_ptr who);
    asio::awaitable<void> let_step_down(candidate_ptr who);
    asio::awaitable<void> close(candidate_ptr who);
    asio::awaitable<void> leave(candidate_ptr who);
    asio::awaitable<void> trouble(faults f, bool silences);
    void begin_silence(int client, bool expires);
    void begin(suspension_policy when_suspended);
    void tick(std::size_t more);
    void end();

    simulation& s_;
    candidate_checker checker_;
    std::unique_ptr<passing_time> time_;  // null: no time passes
    std::size_t working_ = 0;  // coroutines
    std::size_t silent_ = 0;   // clients
    int next_id_ = 0;
};

}  // namespace zkasio::test
