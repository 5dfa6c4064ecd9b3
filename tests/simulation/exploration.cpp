#include "simulation/exploration.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

namespace zkasio::test {
namespace {

// A depth-first search over the choices of a scheduler.
class search final : public scheduler {
public:
    // Of one run; call next() before another.
    std::size_t choose(const std::vector<turn>& possible) override;
    void taken(footprint what) override;
    void rest_in_any_order() override { any_order_ = true; }
    void begin() noexcept {
        depth_ = 0;
        redundant_ = any_order_ = false;
    }
    /// False: everything was tried.
    bool next();
    bool redundant() const noexcept { return redundant_; }
    std::size_t depth() const noexcept { return path_.size(); }

private:
    struct node {
        struct choice {
            int step, party;
        };
        std::vector<choice> possible;
        std::set<int> wanted;             // parties whose steps have to be tried here
        std::map<int, footprint> asleep;  // steps that would lead to a schedule that was already run
        choice chosen{};
        footprint what;
        std::vector<bool> after;  // the steps that have to come before this one
        bool any_order = false;   // no other step is tried here
    };
    void find_races(std::size_t j);
    void want(node& at, const std::set<int>& any_of) const;

    std::vector<node> path_;
    std::size_t depth_ = 0;      // of the current run
    std::size_t first_new_ = 0;  // the first step that differs from the previous run
    bool redundant_ = false, any_order_ = false;
};

std::size_t search::choose(const std::vector<turn>& possible) {
    const auto index_of = [&](int step) {
        const auto at = std::find_if(possible.begin(), possible.end(), [&](const turn& t) { return t.step == step; });
        if (at == possible.end()) throw std::logic_error("the same choices do not lead to the same steps");
        return static_cast<std::size_t>(at - possible.begin());
    };
    if (redundant_) return 0;
    if (depth_ < path_.size()) return index_of(path_[depth_].chosen.step);
    node n;
    for (const turn& t : possible) n.possible.push_back({t.step, t.party});
    if (!path_.empty())
        for (const auto& [step, what] : path_.back().asleep)
            if (!dependent(what, path_.back().what)) n.asleep.emplace(step, what);
    const auto awake = std::find_if(n.possible.begin(), n.possible.end(),
                                    [&](const auto& c) { return !n.asleep.contains(c.step); });
    if (awake == n.possible.end()) {
        redundant_ = true;
        return 0;
    }
    n.any_order = any_order_;
    n.chosen = *awake;
    n.wanted.insert(n.chosen.party);
    path_.push_back(std::move(n));
    return index_of(path_.back().chosen.step);
}

void search::taken(footprint what) {
    if (redundant_) return;
    const std::size_t j = depth_++;
    path_[j].what = std::move(what);
    if (j < first_new_) return;
    find_races(j);
}

void search::find_races(std::size_t j) {
    node& n = path_[j];
    n.after.assign(j, false);
    std::vector<bool> directly(j, false);
    const auto follows = [&](std::size_t i) {
        if (n.after[i]) return;
        n.after[i] = true;
        for (std::size_t k = 0; k < i; ++k)
            if (path_[i].after[k]) n.after[k] = true;
    };
    for (std::size_t i = j; i-- > 0;) {
        const bool same_party = path_[i].chosen.party == n.chosen.party;
        const bool makes_possible = n.what.cause == static_cast<int>(i);
        const bool meets = dependent(path_[i].what, n.what);
        // Reversible: no step between them has to be after the one and before the other.
        directly[i] = meets && !same_party && !makes_possible && !n.after[i];
        if (same_party || makes_possible || meets) follows(i);
    }
    for (std::size_t i = 0; i < j; ++i) {
        if (!directly[i]) continue;
        // The steps that could come before i, instead of after it; and j.
        std::vector<std::size_t> without;
        for (std::size_t k = i + 1; k < j; ++k)
            if (!path_[k].after[i]) without.push_back(k);
        without.push_back(j);
        std::set<int> first;
        for (const std::size_t k : without)
            if (std::none_of(without.begin(), without.end(),
                             [&](std::size_t before) { return before < k && path_[k].after[before]; }))
                first.insert(path_[k].chosen.party);
        want(path_[i], first);
    }
}

void search::want(node& at, const std::set<int>& any_of) const {
    if (at.any_order) return;
    const auto wanted = [&](int party) { return at.wanted.contains(party); };
    if (std::any_of(any_of.begin(), any_of.end(), wanted)) return;
    for (const int party : any_of) {
        if (std::none_of(at.possible.begin(), at.possible.end(), [&](const auto& c) { return c.party == party; }))
            continue;
        at.wanted.insert(party);
        return;
    }
    for (const auto& c : at.possible) at.wanted.insert(c.party);
}

bool search::next() {
    while (!path_.empty()) {
        node& n = path_.back();
        n.asleep.insert_or_assign(n.chosen.step, n.what);
        const auto untried = std::find_if(n.possible.begin(), n.possible.end(), [&](const auto& c) {
            return n.wanted.contains(c.party) && !n.asleep.contains(c.step);
        });
        if (untried != n.possible.end()) {
            n.chosen = *untried;
            first_new_ = path_.size() - 1;
            return true;
        }
        path_.pop_back();
    }
    return false;
}

}  // namespace

exploration explore_runs(const std::function<std::string(scheduler&)>& run, const exploration_limits& most) {
    const auto end = std::chrono::steady_clock::now() + most.time;
    exploration result;
    search choices;
    do {
        choices.begin();
        result.violated = run(choices);
        if (!result.violated.empty()) {
            choices.begin();
            const std::string repeated = run(choices);
            if (repeated != result.violated) result.violated += "; BUT WHEN REPEATED: " + repeated;
            return result;
        }
        result.longest = std::max(result.longest, choices.depth());
        ++(choices.redundant() ? result.redundant : result.schedules);
        if (!choices.next()) {
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
