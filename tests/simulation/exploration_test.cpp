#include "simulation/exploration.hpp"

#include "support/catch.hpp"

#include <cstddef>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

// The search itself, with small programs whose schedules are also counted one by one.
namespace exploration_tests {

using namespace zkasio::test;

namespace {

struct operation {
    std::string variable;
    bool writes;
};

// Each party runs its operations in order. Those of the last party become possible with the first step of party 0.
using program = std::vector<std::vector<operation>>;

program random_program(std::mt19937& random) {
    program p(3);
    for (auto& party : p)
        for (std::size_t n = 1 + random() % 3; n > 0; --n)
            party.push_back({std::string("n") + "abc"[random() % 3], random() % 3 == 0});
    return p;
}

footprint footprint_of(const operation& o) {
    footprint f;
    (o.writes ? f.changed : f.read) = {o.variable};
    return f;
}

struct state {
    std::vector<std::size_t> next;
    std::vector<std::size_t> parties;  // who has taken each step
    int cause = -1;                    // the first step of party 0

    explicit state(const program& p) : next(p.size(), 0) {}
    bool possible(const program& p, std::size_t party) const {
        return next[party] < p[party].size() && (party + 1 < p.size() || cause >= 0);
    }
    footprint take(const program& p, std::size_t party) {
        footprint f = footprint_of(p[party][next[party]]);
        if (party + 1 == p.size() && next[party] == 0) f.cause = cause;
        if (party == 0 && next[0] == 0) cause = static_cast<int>(parties.size());
        ++next[party];
        parties.push_back(party);
        return f;
    }
};

// Which of the steps that depend on each other comes first: what schedules have in common that differ only in steps
// that commute.
std::string order_of(const program& p, const std::vector<std::size_t>& parties) {
    struct step {
        std::size_t party, number;
        footprint what;
    };
    std::vector<step> steps;
    std::vector<std::size_t> numbers(p.size(), 0);
    for (const std::size_t party : parties)
        steps.push_back({party, numbers[party], footprint_of(p[party][numbers[party]])}), ++numbers[party];
    std::set<std::string> pairs;
    const auto text = [](const step& s) { return std::to_string(s.party) + '.' + std::to_string(s.number); };
    for (std::size_t i = 0; i < steps.size(); ++i)
        for (std::size_t j = i + 1; j < steps.size(); ++j)
            if (dependent(steps[i].what, steps[j].what)) pairs.insert(text(steps[i]) + '<' + text(steps[j]) + ' ');
    std::string all;
    for (const std::string& pair : pairs) all += pair;
    return all;
}

void count(const program& p, const state& now, std::set<std::string>& orders) {
    bool ended = true;
    for (std::size_t party = 0; party < p.size(); ++party) {
        if (!now.possible(p, party)) continue;
        ended = false;
        state then = now;
        then.take(p, party);
        count(p, then, orders);
    }
    if (ended) orders.insert(order_of(p, now.parties));
}

// Party 1 acts at any time.
bool any_time(std::size_t party) { return party == 1; }

// Those with so many delays at most. @param last the party that took the latest step, but for those at any time
void count_delayed(const program& p, const state& now, std::size_t last, std::size_t delays,
                   std::set<std::string>& orders) {
    bool ended = true;
    std::size_t cost = 0;
    for (std::size_t n = 0; n < p.size(); ++n) {
        const std::size_t party = (last + n) % p.size();
        if (!now.possible(p, party)) continue;
        ended = false;
        if (!any_time(party) && cost > delays) continue;
        state then = now;
        then.take(p, party);
        if (any_time(party))
            count_delayed(p, then, last, delays, orders);
        else
            count_delayed(p, then, party, delays - cost++, orders);
    }
    if (ended) orders.insert(order_of(p, now.parties));
}

// Adds the order of each run to `seen`.
exploration explore_program(const program& p, const exploration_limits& most, std::set<std::string>& seen) {
    return explore_runs(
        [&](scheduler& by) {
            state now(p);
            for (;;) {
                std::vector<turn> possible;
                for (std::size_t party = 0; party < p.size(); ++party)
                    if (now.possible(p, party))
                        possible.push_back({static_cast<int>(party), static_cast<int>(party), any_time(party)});
                if (possible.empty()) break;
                const auto party = static_cast<std::size_t>(possible[by.choose(possible)].party);
                by.taken(now.take(p, party));
            }
            seen.insert(order_of(p, now.parties));
            return std::string();
        },
        most);
}

}  // namespace

TEST_CASE("exploration: each order of dependent steps is run once", "[exploration]") {
    std::mt19937 random(1);
    std::size_t schedules = 0;
    for (int n = 0; n < 300; ++n) {
        INFO("program " << n);
        const program p = random_program(random);
        std::set<std::string> all, seen;
        count(p, state(p), all);
        const exploration e = explore_program(p, exploration_limits(), seen);
        CHECK(e.complete);
        CHECK(seen == all);
        CHECK(e.schedules == all.size());
        schedules += e.schedules;
    }
    CHECK(schedules > 1000);
}

TEST_CASE("exploration: with few delays just the orders that need no more are run", "[exploration]") {
    std::mt19937 random(2);
    std::size_t most_orders = 0, fewest_orders = 0;
    for (int n = 0; n < 100; ++n) {
        const program p = random_program(random);
        std::set<std::string> all;
        count(p, state(p), all);
        for (std::size_t delays = 0; delays < 4; ++delays) {
            INFO("program " << n << ", delays: " << delays);
            std::set<std::string> wanted, seen;
            count_delayed(p, state(p), 0, delays, wanted);
            exploration_limits most;
            most.delays = delays;
            const exploration e = explore_program(p, most, seen);
            CHECK(e.complete);
            CHECK(seen == wanted);
            CHECK(e.schedules == wanted.size());
            if (delays == 0) fewest_orders += wanted.size();
        }
        exploration_limits most;
        most.delays = 100;
        std::set<std::string> seen;
        explore_program(p, most, seen);
        CHECK(seen == all);
        most_orders += all.size();
    }
    CHECK(fewest_orders < most_orders);
}

TEST_CASE("exploration: a schedule that fails is found, and is repeatable", "[exploration]") {
    exploration_limits most;
    if (GENERATE(false, true)) most.delays = 2;
    // Both read, then both write what they have read plus 1.
    const exploration e = explore_runs(
        [](scheduler& by) {
            std::string order;
            int number = 0;
            int read[2] = {0, 0}, steps[2] = {0, 0};
            for (;;) {
                std::vector<turn> possible;
                for (int party = 0; party < 2; ++party)
                    if (steps[party] < 2) possible.push_back({party, party});
                if (possible.empty()) break;
                const int party = possible[by.choose(possible)].party;
                order += std::to_string(party);
                footprint f;
                if (steps[party]++ == 0) {
                    read[party] = number;
                    f.read = {"n"};
                } else {
                    number = read[party] + 1;
                    f.changed = {"n"};
                }
                by.taken(std::move(f));
            }
            return number == 2 ? std::string() : "an addition is lost: " + order;
        },
        most);
    CHECK(e.violated.starts_with("an addition is lost: "));
    CHECK(e.violated.find("REPEATED") == std::string::npos);
}

}  // namespace exploration_tests
