#pragma once

#include "simulation/explored.hpp"
#include "simulation/lock_scenario.hpp"
#include "simulation/simulation.hpp"

#include <zkasio/barriers/double_barrier.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace zkasio::test {

inline const std::string barrier_directory = "/barriers/simulated";

/// Watches a double barrier from outside: what its members are told, and what happens in the tree. Throws `violation`
/// when the two do not add up.
///
/// Nobody enters unless, while its node stood, enough members stood at the same time, or a member of a round that had
/// begun in this way. Nobody has left before all that were inside have. With exactly(), no more members are inside than
/// may be.
class barrier_checker {
public:
    barrier_checker(const sim_ensemble& ensemble, std::size_t members, bool exactly)
        : ensemble_(ensemble), members_(members), exactly_(exactly) {}

    void committed(const sim_txn& txn);
    void entered(const std::string& node);
    /// The nodes of the other members that are inside, as of the beginning of a leave().
    std::set<std::string> begins_to_leave(const std::string& node);
    void left(const std::string& node, const std::set<std::string>& inside) const;
    void check() const;

    std::vector<std::string> standing() const;  ///< paths, sorted

private:
    struct member {
        std::int64_t born = 0;
        std::int64_t session = 0;
        bool in_a_round = false;  ///< enough have stood with it, or one that was in a round
        bool inside = false;
    };
    const sim_ensemble& ensemble_;
    const std::size_t members_;
    const bool exactly_;
    std::map<std::string, member> standing_;
    std::set<std::string> passed_;  ///< nodes that were ever legally in a round: their entries may be told late
};

/// Members of some clients enter, work and leave, over and over.
class barrier_scenario {
public:
    struct shape {
        std::size_t members = 2;
        std::size_t workers = 2;
        bool exactly = false;
    };
    barrier_scenario(simulation& s, shape of);
    ~barrier_scenario();

    void run_at_random(const faults& f);
    enum class explored {
        all,
        entering,  ///< until each has entered, or failed
        leaving,   ///< all have entered
    };
    /// All schedules of members who enter and leave once.
    void run_all_orders(const explored_plan& p, explored what);

private:
    using entry_ptr = std::shared_ptr<std::optional<barrier_entry>>;

    static asio::awaitable<void> enter(barrier_scenario& self, client zk, std::string id, entry_ptr to);
    static asio::awaitable<void> leave(barrier_scenario& self, std::string id, entry_ptr entry);
    static asio::awaitable<void> run(barrier_scenario& self, client zk, std::string id, std::size_t steps);
    asio::awaitable<void> attempt(int client, std::string id);
    asio::awaitable<void> worker(int client, std::size_t number, std::size_t rounds);
    asio::awaitable<void> trouble(faults f);
    asio::awaitable<void> once(int client, int number);
    void end();
    double_barrier barrier_of(client zk) const;
    void expect(int client, const std::string& id, std::exception_ptr failed, bool cancelled) const;

    simulation& s_;
    const shape shape_;
    barrier_checker checker_;
    std::set<int> expired_;  // clients
    bool operator_was_here_ = false, finishing_ = false;
    std::size_t working_ = 0;
    std::size_t outside_ = 0;  // under a scheduler: how many are about to enter
    bool leaves_in_any_order_ = false;
    std::map<std::string, running> entering_;
    int next_id_ = 0;
};

}  // namespace zkasio::test
