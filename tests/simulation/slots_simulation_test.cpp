#include "simulation/simulated_locks.hpp"

#include "support/catch.hpp"

#include <zkasio/locks/slots.hpp>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace zkasio::test {
namespace {

const std::string numbers = "/locks/numbers";
constexpr std::uint32_t how_many = 3;

slots numbers_of(client zk, std::string id) {
    return {std::move(zk), numbers, how_many, slots_options().data(std::move(id))};
}

/// A holdings_checker, and what is special about slots: no number is held twice, and nobody waits while one is free.
class slots_checker final : public checker {
public:
    explicit slots_checker(const sim_ensemble& ensemble)
        : ensemble_(ensemble), holdings_(ensemble, {{numbers, static_cast<int>(how_many)}}) {}

    std::string asks(int client, const lock_under_test& what, lock_kind kind, bool patient) override {
        std::string id = holdings_.asks(client, what, kind, patient);
        asking_.insert(id);
        return id;
    }
    void granted(const std::string& id, const lock_guard& guard) override {
        asking_.erase(id);
        if (!guard.slot() || guard.path() != numbers + '/' + std::to_string(*guard.slot()))
            throw violation(id + " has another number than its node");
        for (const auto& [other, held] : holding_)
            if (held->slot() == guard.slot() && node_is_there(*held) && node_is_there(guard))
                throw violation(id + " has the number of " + other);
        holding_[id] = &guard;
        holdings_.granted(id, guard);
    }
    void gives_up(const std::string& id) override {
        asking_.erase(id);
        holding_.erase(id);
        holdings_.gives_up(id);
    }
    void works(const std::string& id, bool now) override {
        now ? static_cast<void>(working_.insert(id)) : static_cast<void>(working_.erase(id));
        holdings_.works(id, now);
    }
    void released(const std::string& id) const override { holdings_.released(id); }
    void committed(const sim_txn& txn) override { holdings_.committed(txn); }
    void told_removed(int client, const std::string& path, std::int64_t czxid) override {
        holdings_.told_removed(client, path, czxid);
    }

    void check() const override { holdings_.check(); }
    void check_quiet() override {
        holdings_.check_quiet();
        // A body that still runs keeps its number from others of its client.
        if (!asking_.empty() && working_.empty() && held_now() < how_many && !holdings_.waits_for_a_heartbeat() &&
            !lost_and_kept())
            throw violation(*asking_.begin() + " waits, and a number is free");
    }
    void check_end() const override { holdings_.check_end(); }
    bool busy(int client) const override { return holdings_.busy(client); }
    std::optional<int> waits_for_a_heartbeat() const override { return holdings_.waits_for_a_heartbeat(); }
    std::size_t nodes_alive() const override { return holdings_.nodes_alive(); }
    std::string nth_node(std::size_t n) const override { return holdings_.nth_node(n); }

private:
    bool node_is_there(const lock_guard& guard) const {
        const sim_node* const node = ensemble_.tree().find(guard.path());
        return node && node->stat.czxid == guard.token().value();
    }
    std::size_t held_now() const {
        return ensemble_.tree().find(numbers) ? ensemble_.tree().children(numbers).size() : 0;
    }
    // An operator has deleted its node, and it does not know yet: until then it keeps the number from its client.
    bool lost_and_kept() const {
        for (const auto& [id, guard] : holding_)
            if (guard->held() && !node_is_there(*guard)) return true;
        return false;
    }

    const sim_ensemble& ensemble_;
    holdings_checker holdings_;
    std::set<std::string> asking_, working_;
    std::map<std::string, const lock_guard*> holding_;
};

const things number{thing({{numbers}}, numbers_of)};

void run_slots(const std::string& name, faults f) {
    f.all_sorts_of_users = true;
    run_seeds("slots, " + name, 300, [&](simulation& s) {
        s.ensemble.lagging = s.chance(50);
        lock_scenario(s, number, std::make_unique<slots_checker>(s.ensemble)).run_at_random(f);
    });
}

}  // namespace

TEST_CASE("slots, simulated: users of all sorts", "[simulation]") { run_slots("calm", {}); }

TEST_CASE("slots, simulated: connections break", "[simulation]") {
    faults f;
    f.drops = true;
    run_slots("drops", f);
}

TEST_CASE("slots, simulated: connections break, and the numbers are lost with them", "[simulation]") {
    faults f;
    f.drops = f.drops_lose = true;
    run_slots("drops that lose", f);
    f.bodies = true;
    run_slots("drops that lose, and bodies that go on", f);
}

TEST_CASE("slots, simulated: sessions expire", "[simulation]") {
    faults f;
    f.drops = f.expiries = true;
    run_slots("expiries", f);
}

TEST_CASE("slots, simulated: the directory is removed when it is empty", "[simulation]") {
    faults f;
    f.containers = f.drops = true;
    run_slots("containers", f);
}

TEST_CASE("slots, simulated: an operator deletes nodes", "[simulation]") {
    faults f;
    f.drops = f.operator_deletes = true;
    run_slots("operator", f);
}

TEST_CASE("slots, simulated: an operator deletes the directory", "[simulation]") {
    faults f;
    f.directory_deletes = true;
    run_slots("directories", f);
}

}  // namespace zkasio::test
