// Source sets and sleep sets: Abdulla, Aronsson, Jonsson, Sagonas, "Optimal dynamic partial order reduction", POPL
// 2014, algorithm 1.

#include "simulation/schedule_search.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace zkasio::test {
namespace {

class every_order_search final : public schedule_search {
public:
    std::size_t choose(const std::vector<turn>& possible) override;
    void taken(footprint what) override;
    void rest_in_any_order() override { any_order_ = true; }
    void begin() noexcept override {
        depth_ = 0;
        redundant_ = any_order_ = false;
    }
    bool end() override { return redundant_; }
    std::size_t depth() const noexcept override { return path_.size(); }
    bool next() override;

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

std::size_t every_order_search::choose(const std::vector<turn>& possible) {
    if (redundant_) return 0;
    if (depth_ < path_.size()) return index_of(possible, path_[depth_].chosen.step);
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
    return index_of(possible, path_.back().chosen.step);
}

void every_order_search::taken(footprint what) {
    if (redundant_) return;
    const std::size_t j = depth_++;
    path_[j].what = std::move(what);
    if (j < first_new_) return;
    find_races(j);
}

void every_order_search::find_races(std::size_t j) {
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

void every_order_search::want(node& at, const std::set<int>& any_of) const {
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

bool every_order_search::next() {
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

std::unique_ptr<schedule_search> search_every_order() { return std::make_unique<every_order_search>(); }

}  // namespace zkasio::test
