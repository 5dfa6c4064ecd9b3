#include "simulation/simulated_locks.hpp"

#include "support/catch.hpp"

#include <zkasio/locks/cohort_mutex.hpp>
#include <zkasio/path.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::test {
namespace {

/// Watches a lock whose nodes stand for many guards, one after another: that no two guards hold it, that tokens rise,
/// that no node ahead of the holder's is another client's, and that nobody waits for a lock that nobody has.
class cohort_checker final : public checker {
public:
    /// @param lingers an idle place is kept until another contender comes.
    cohort_checker(const sim_ensemble& ensemble, std::string directory, bool lingers)
        : ensemble_(ensemble), directory_(std::move(directory)), lingers_(lingers) {}

    std::string asks(int client, const lock_under_test&, lock_kind, bool patient) override {
        std::string id = std::to_string(client) + '.' + std::to_string(attempts_++);
        asking_[id] = {client, patient};
        clients_[id] = client;
        return id;
    }
    void granted(const std::string& id, const lock_guard& guard) override {
        // It may have been cancelled in the meantime, too late for its coroutine.
        asking_.erase(id);
        holding_[id] = {clients_.at(id), &guard};
        if (!node_is_there(guard) || !guard.held()) return;
        check();
        if (guard.token() <= last_) throw violation(id + " has a token that is not larger than an earlier one");
        last_ = guard.token();
        const std::int64_t owner = ensemble_.tree().find(guard.path())->stat.ephemeral_owner;
        for (const std::string& path : nodes())
            if (number(path) < number(guard.path()) && ensemble_.tree().find(path)->stat.ephemeral_owner != owner)
                throw violation(id + " was granted the lock behind a node of another client");
    }
    void gives_up(const std::string& id) override {
        asking_.erase(id);
        holding_.erase(id);
    }
    void works(const std::string& id, bool now) override {
        now ? static_cast<void>(working_.insert(id)) : static_cast<void>(working_.erase(id));
    }
    void released(const std::string&) const override {}

    void committed(const sim_txn& txn) override {
        for (const sim_change& c : txn.changes) {
            if (parent_path(c.path) != directory_) continue;
            if (c.what == sim_change::kind::created) {
                owners_[c.path] = c.node.stat.ephemeral_owner;
            } else if (c.what == sim_change::kind::removed) {
                if (txn.session == 0)
                    deleted_.insert(c.path);
                else if (!txn.ends_session)
                    given_back_.insert(c.path);
            }
        }
        if (txn.ends_session) std::erase_if(deleted_, [&](const auto& path) { return owners_[path] == txn.session; });
    }
    void told_removed(int, const std::string& path, std::int64_t) override { deleted_.erase(path); }

    void check() const override {
        const std::string* holder = nullptr;
        for (const auto& [id, a] : holding_) {
            if (!a.guard->held()) continue;
            if (given_back_.contains(a.guard->path())) throw violation(id + " holds, and its node was given back");
            if (!node_is_there(*a.guard)) continue;
            if (holder) throw violation(id + " and " + *holder + " both hold");
            holder = &id;
        }
    }
    void check_quiet() override {
        if (!working_.empty() || waits_for_a_heartbeat() || !holding_.empty()) return;
        for (const auto& [id, a] : asking_)
            if (a.patient) throw violation(id + " waits, and nobody has the lock");
    }
    void check_end() const override {
        if (nodes_alive() > 0) throw violation("a node is left");
    }
    bool busy(int client) const override {
        const auto is_its = [client](const auto& entry) { return entry.second.client == client; };
        return std::any_of(asking_.begin(), asking_.end(), is_its) ||
               std::any_of(holding_.begin(), holding_.end(), is_its) || idle_place() == client;
    }
    // At the end of a run, a place that lingers goes with its session.
    std::optional<int> waits_for_a_heartbeat() const override {
        if (asking_.empty() && holding_.empty()) return idle_place();
        for (const std::string& path : deleted_)
            for (const auto& [id, a] : asking_)
                if (ensemble_.session_of(a.client) == owners_.at(path)) return a.client;
        return std::nullopt;
    }
    std::size_t nodes_alive() const override { return nodes().size(); }
    std::string nth_node(std::size_t n) const override {
        const std::vector<std::string> all = nodes();
        return n < all.size() ? all[n] : std::string();
    }

private:
    struct asking {
        int client;
        bool patient;
    };
    struct holding {
        int client;
        const lock_guard* guard;
    };
    // The client whose place lingers, if that is the only node.
    std::optional<int> idle_place() const {
        const std::vector<std::string> all = nodes();
        if (!lingers_ || all.size() != 1) return std::nullopt;
        const std::int64_t owner = ensemble_.tree().find(all.front())->stat.ephemeral_owner;
        for (const auto& [id, client] : clients_)
            if (ensemble_.session_of(client) == owner) return client;
        return std::nullopt;
    }
    static std::int64_t number(const std::string& path) { return std::stoll(path.substr(path.size() - 10)); }
    bool node_is_there(const lock_guard& guard) const {
        const sim_node* const node = ensemble_.tree().find(guard.path());
        return node && node->stat.czxid == guard.token().value();
    }
    std::vector<std::string> nodes() const {
        std::vector<std::string> all;
        if (ensemble_.tree().find(directory_))
            for (const std::string& name : ensemble_.tree().children(directory_))
                all.push_back(join_path(directory_, name));
        return all;
    }

    const sim_ensemble& ensemble_;
    const std::string directory_;
    const bool lingers_;
    std::map<std::string, int> clients_;  // of all attempts
    std::map<std::string, asking> asking_;
    std::map<std::string, holding> holding_;
    std::set<std::string> working_, deleted_, given_back_;
    std::map<std::string, std::int64_t> owners_;
    fencing_token last_;
    std::size_t attempts_ = 0;
};

const std::string shared_path = "/locks/cohort";

// In a simulation no time passes: a place that lingers does so until another contender comes, or for ever.
lock_under_test cohort_of(std::uint64_t turns, bool lingers) {
    return thing({{shared_path}}, [turns, lingers](client zk, std::string) {
        cohort_mutex_options how;
        how.turns(turns).linger(std::chrono::hours(lingers ? 1 : 0));
        return cohort_mutex(std::move(zk), shared_path, how);
    });
}
lock_under_test plain_mutex() {
    return thing({{shared_path}}, [](client zk, std::string id) { return mutex_at(std::move(zk), shared_path, id); });
}

void run_cohorts(const std::string& name, faults f, std::uint64_t seeds = 500) {
    f.all_sorts_of_users = true;
    run_seeds(name, seeds, [&](simulation& s) {
        s.ensemble.lagging = s.chance(50);
        const bool lingers = s.chance(50);
        things locks;
        locks.push_back(cohort_of(1 + s.pick(4), lingers));
        if (s.chance(30)) locks.push_back(plain_mutex());
        auto checker = std::make_unique<cohort_checker>(s.ensemble, shared_path, lingers);
        lock_scenario(s, locks, std::move(checker)).run_at_random(f);
    });
}

}  // namespace

TEST_CASE("cohort_mutex, simulated: users of all sorts", "[simulation]") { run_cohorts("calm", {}); }

TEST_CASE("cohort_mutex, simulated: connections break", "[simulation]") {
    faults f;
    f.drops = f.containers = true;
    run_cohorts("drops", f);
}

TEST_CASE("cohort_mutex, simulated: connections break, and the locks are lost with them", "[simulation]") {
    faults f;
    f.drops = f.drops_lose = true;
    run_cohorts("drops that lose", f);
    f.bodies = true;
    run_cohorts("drops that lose, and bodies that go on", f);
}

TEST_CASE("cohort_mutex, simulated: sessions expire", "[simulation]") {
    faults f;
    f.drops = f.expiries = f.bodies = true;
    run_cohorts("expiries", f);
}

TEST_CASE("cohort_mutex, simulated: an operator deletes nodes", "[simulation]") {
    faults f;
    f.drops = f.operator_deletes = true;
    run_cohorts("operator", f);
}

}  // namespace zkasio::test
