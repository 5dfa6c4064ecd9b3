// Delay bounding: Emmi, Qadeer, Rakamaric, "Delay-bounded scheduling", POPL 2011.

#include "simulation/schedule_search.hpp"

#include <cstdint>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace zkasio::test {
namespace {

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) noexcept {  // splitmix64
    std::uint64_t x = a + 0x9e3779b97f4a7c15U * (b + 1);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

// Without a delay, the parties take turns: one takes its steps until none is possible, and the next one follows, in the
// order of their numbers. A delay passes over one step. What may happen at any time is neither waited for nor a delay.
class few_delays_search final : public schedule_search {
public:
    explicit few_delays_search(std::size_t most) : most_(most) {}

    void begin() noexcept override {
        depth_ = 0;
        redundant_ = any_order_ = false;
    }
    std::size_t choose(const std::vector<turn>& possible) override;
    void taken(footprint what) override;
    void rest_in_any_order() override { any_order_ = true; }
    bool end() override { return redundant_ || !ended_.insert(after_last().trace).second; }
    std::size_t depth() const noexcept override { return path_.size(); }
    bool next() override;

private:
    // What the steps up to here have in common with all orders that differ only in steps that commute; and on what the
    // costs of the steps that follow depend.
    struct place {
        std::uint64_t trace = 0;
        int party = 0;
        std::size_t delays_left = 0;
    };
    struct option {
        int step, party;
        bool any_time;
        std::size_t delays;
    };
    struct node {
        place before;
        std::vector<option> options;  // at least one
        std::size_t chosen = 0;
        footprint what;
        std::uint64_t hash = 0;  // of the step, and of all that have to come before it
    };
    static std::vector<option> options_of(const std::vector<turn>& possible, const place& at);
    place after_last() const;
    bool was_at(const place& p);

    const std::size_t most_;
    std::vector<node> path_;
    std::unordered_map<std::uint64_t, std::size_t> seen_;  // the most delays that were left
    std::unordered_set<std::uint64_t> ended_;  // traces of whole runs
    std::size_t depth_ = 0;      // of the current run
    std::size_t first_new_ = 0;  // the first step that differs from the previous run
    bool redundant_ = false, any_order_ = false;
    place rest_;  // where it turned out that the run is redundant
};

// The first option needs no delay.
std::vector<few_delays_search::option> few_delays_search::options_of(const std::vector<turn>& possible,
                                                                     const place& at) {
    std::vector<option> all;
    for (const turn& t : possible) all.push_back({t.step, t.party, t.any_time, 0});
    std::sort(all.begin(), all.end(), [&](const option& a, const option& b) {
        const auto rank = [&](const option& o) { return std::tuple(o.any_time, o.party < at.party, o.party, o.step); };
        return rank(a) < rank(b);
    });
    std::size_t delays = 0;
    for (option& o : all)
        if (!o.any_time) o.delays = delays++;
    std::erase_if(all, [&](const option& o) { return o.delays > at.delays_left; });
    return all;
}

few_delays_search::place few_delays_search::after_last() const {
    if (path_.empty()) return {0, 0, most_};
    const node& last = path_.back();
    const option& o = last.options[last.chosen];
    place p = last.before;
    p.trace += last.hash;  // in whatever order the steps came
    if (!o.any_time) p.party = o.party;
    p.delays_left -= o.delays;
    return p;
}

// Whether all that may follow has been, or will be, run from an earlier schedule.
bool few_delays_search::was_at(const place& p) {
    const auto [at, is_new] = seen_.try_emplace(mixed(p.trace, static_cast<std::uint64_t>(p.party)), p.delays_left);
    if (is_new || at->second < p.delays_left) {
        at->second = p.delays_left;
        return false;
    }
    return true;
}

std::size_t few_delays_search::choose(const std::vector<turn>& possible) {
    if (redundant_) {  // goes on without a delay
        const option o = options_of(possible, rest_).front();
        if (!o.any_time) rest_.party = o.party;
        return index_of(possible, o.step);
    }
    if (depth_ == path_.size()) {
        node n;
        n.before = after_last();
        n.options = options_of(possible, n.before);
        if (any_order_) n.options.resize(1);
        path_.push_back(std::move(n));
    }
    const node& n = path_[depth_];
    return index_of(possible, n.options[n.chosen].step);
}

void few_delays_search::taken(footprint what) {
    if (redundant_) return;
    const std::size_t j = depth_++;
    if (j < first_new_ || depth_ < path_.size()) return;  // as in an earlier run, or when a run is repeated
    node& n = path_[j];
    const option& o = n.options[n.chosen];
    n.what = std::move(what);
    n.hash = mixed(static_cast<std::uint64_t>(o.party), static_cast<std::uint64_t>(o.step));
    std::uint64_t before = 0;
    for (std::size_t i = 0; i < j; ++i) {
        const node& earlier = path_[i];
        const bool has_to_be_earlier = earlier.options[earlier.chosen].party == o.party ||
                                       n.what.cause == static_cast<int>(i) || dependent(earlier.what, n.what);
        if (has_to_be_earlier) before += mixed(earlier.hash, 0);
    }
    n.hash = mixed(n.hash, before);
    rest_ = after_last();
    redundant_ = was_at(rest_);
}

bool few_delays_search::next() {
    for (; !path_.empty(); path_.pop_back()) {
        node& n = path_.back();
        if (++n.chosen == n.options.size()) continue;
        first_new_ = path_.size() - 1;
        return true;
    }
    return false;
}

}  // namespace

std::unique_ptr<schedule_search> search_few_delays(std::size_t most) {
    return std::make_unique<few_delays_search>(most);
}

}  // namespace zkasio::test
