#pragma once

#include "simulation/explored.hpp"
#include "simulation/lock_scenario.hpp"
#include "simulation/simulation.hpp"

#include <zkasio/election/leader_election.hpp>

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace zkasio::test {

inline const std::string election_directory = "/elections/simulated";

/// What an observer may tell: the leader's token and its data, or nothing where nobody leads.
struct election_truth {
    std::int64_t token = 0;
    std::string data;
    friend bool operator==(const election_truth&, const election_truth&) = default;
};

/// Watches an election from outside: what leaders and observers are told, and what happens in the tree. Throws
/// `violation` when the two do not add up.
///
/// Of those who believe to lead, and whose nodes are there, there is never more than one; each that is elected has a
/// higher token than all before; what an observer tells is, in order and without repetition, what was true, and when
/// nothing is under way it is what is true. Where an operator deletes nodes, whoever is handed the leadership by one
/// who had lost it, and could not know, may believe to lead until the servers have answered: its term is doubted.
class election_checker {
    struct held_term {
        const leadership* leader;
        bool doubted;
    };
    using term_list = std::list<held_term>;

public:
    explicit election_checker(const sim_ensemble& ensemble) : ensemble_(ensemble) { history_.push_back(now()); }

    /// A term, from the election until the leader wants it no longer. @param leader outlives that.
    class term {
    public:
        term(election_checker& checker, const leadership& leader);
        term(const term&) = delete;
        term& operator=(const term&) = delete;
        ~term() { terms_->erase(at_); }

    private:
        // When a scenario fails, its coroutines are destroyed after it.
        std::shared_ptr<term_list> terms_;
        term_list::iterator at_;
    };

    void told(int observer, const leader_view& view);
    void committed(const sim_txn& txn);
    void check() const { check_terms(false); }
    /// Nothing is under way. @param observers who wait in next().
    void check_quiet(const std::set<int>& observers);
    bool idle() const noexcept { return terms_->empty(); }
    /// How many terms have been lost, and not ended yet.
    std::size_t losses() const;
    std::vector<std::string> nodes() const;

private:
    struct observed {
        std::size_t at = 0;  // in the history: what it has told last
        bool any = false;
        leader_view last;
    };
    election_truth now() const;
    bool is_first(const leadership& leader) const;
    void check_terms(bool doubted_ones_too) const;

    const sim_ensemble& ensemble_;
    std::vector<election_truth> history_;  // without repetition
    std::shared_ptr<term_list> terms_ = std::make_shared<term_list>();
    std::map<int, observed> observers_;
    std::int64_t highest_token_ = 0;
    bool operator_was_here_ = false;
};

/// Candidates of some clients stand, lead and resign over and over, while observers tell who leads.
class election_scenario {
public:
    explicit election_scenario(simulation& s);
    ~election_scenario();

    void run_at_random(const faults& f);
    enum class observers {
        none,
        one
    };
    /// All schedules of users who stand once; an observer takes the place of the last of them.
    void run_all_orders(const explored_plan& p, observers there);

private:
    asio::awaitable<void> once(int client, std::string id);
    asio::awaitable<void> one_term(int client, std::string id);
    void end();
    asio::awaitable<void> candidate(int client, std::size_t rounds);
    asio::awaitable<void> campaign(int client, std::string id);
    asio::awaitable<void> lead(int client, std::string id);
    asio::awaitable<void> serve(int client, leadership& leader, std::string id);
    asio::awaitable<void> proclaim(leadership& leader, std::string id);
    asio::awaitable<void> attempt(int client, std::string id, asio::awaitable<void> what);
    asio::awaitable<void> observe(int client, int number);
    asio::awaitable<void> trouble(faults f);
    leader_election election_of(int client, std::string id) const;
    void begin_near_the_highest_number();

    simulation& s_;
    election_checker checker_;
    std::vector<running> observers_;
    std::set<int> attentive_;  // observers that wait in next()
    std::size_t working_ = 0;
    int next_id_ = 0;
};

}  // namespace zkasio::test
