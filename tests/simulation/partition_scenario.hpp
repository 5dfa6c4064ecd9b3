#pragma once

#include "simulation/passing_time.hpp"
#include "simulation/simulation.hpp"

#include "support/test_client.hpp"

#include <zkasio/membership/group.hpp>
#include <zkasio/membership/partitioner.hpp>

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::test {

struct partition_faults {
    bool drops = false;
    bool outages = false;     ///< of clients, up to more than their sessions live
    bool drops_lose = false;  ///< suspension_policy::lose
    bool expiries = false;    ///< sessions end before their time
    bool operator_deletes_members = false, operator_deletes_locks = false;
};

/// Watches who works on the partitions of a partitioner: never two at the same time, and each later one with a larger
/// token. A commit() is applied only while its owner has the lock.
class partition_checker {
public:
    partition_checker(std::string locks, std::string commits)
        : locks_(std::move(locks)), commits_(std::move(commits)) {}

    /// A body that works on a partition, while it exists.
    class work {
    public:
        work(partition_checker& checker, const held_partition& what);
        ~work() { working_->erase(at_); }
        work(const work&) = delete;
        work& operator=(const work&) = delete;

    private:
        std::shared_ptr<std::list<const held_partition*>> working_;
        std::list<const held_partition*>::iterator at_;
    };

    /// The name of a node that the owner of a partition creates with commit().
    static std::string commit_name(const held_partition& p, std::size_t number);

    void committed(const sim_txn& txn);
    /// Sessions that end now do so before their time.
    void sessions_are_cut_short(bool now) noexcept { cut_short_now_ = now; }

    void check() const;
    bool idle() const noexcept { return working_->empty(); }

private:
    bool counts(const held_partition& p) const { return p.held() && !cut_short_.contains(p.token().value()); }

    const std::string locks_, commits_;
    std::map<std::string, std::int64_t> highest_;  // tokens, by partition
    std::set<std::int64_t> owners_;                // the czxids of the locks' nodes that there are
    std::set<std::int64_t> cut_short_;             // ended by an operator, or with a session before its time
    std::shared_ptr<std::list<const held_partition*>> working_ = std::make_shared<std::list<const held_partition*>>();
    bool cut_short_now_ = false;
};

/// Members of a partitioner come and go. When all faults are over, the partitions are divided among those that stay.
class partition_scenario {
public:
    partition_scenario(simulation& s, const partition_faults& f);
    ~partition_scenario();

    void run_at_random();

private:
    struct member {
        member(partitioner p, bool in_turn) : divides(std::move(p)), is_in_turn(in_turn) {}
        partitioner divides;
        bool is_in_turn;  // of a version that knows assign_in_turn() only
        std::optional<running> task;
        std::shared_ptr<std::set<std::string>> bodies = std::make_shared<std::set<std::string>>();  // by partition
    };

    int some_client() { return static_cast<int>(s_.pick(static_cast<std::size_t>(s_.clients()))); }
    void add_member(int client);
    asio::awaitable<void> come_and_go(std::size_t rounds);
    asio::awaitable<void> run_member(int client, member* m);
    asio::awaitable<void> work(int client, member* m, held_partition& p);
    asio::awaitable<void> work_somehow(int client, held_partition& p);
    asio::awaitable<void> end_member(std::list<member>::iterator m);
    asio::awaitable<void> trouble(std::size_t rounds);
    asio::awaitable<void> finish();
    void delete_some_lock();

    std::vector<std::string> ids() const;
    bool is_divided(const group_observer& observer) const;

    simulation& s_;
    const partition_faults faults_;
    passing_time time_;
    partition_checker checker_;
    std::vector<std::string> partitions_;
    std::list<member> members_;
    std::size_t working_ = 0, next_id_ = 0, commits_ = 0;
    int other_versions_ = 0;  // percent
    bool calm_ = false, finished_ = false;
};

}  // namespace zkasio::test
