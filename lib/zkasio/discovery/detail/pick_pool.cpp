#include <zkasio/discovery/detail/pick_pool.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace zkasio::discovery_detail {

std::uint64_t hash_of(std::string_view text) noexcept {
    std::uint64_t h = 0xcbf29ce484222325;
    for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return h;
}

std::uint64_t mixed(std::uint64_t x) noexcept {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

// So that no sum of weights is infinite.
constexpr double most_weight = 1e100;

member::member(std::string n, service_instance i, double w, std::shared_ptr<incarnation> c)
    : node(std::move(n)),
      instance(std::move(i)),
      weight(std::isfinite(w) && w > 0 ? std::min(w, most_weight) : 0),
      hash(hash_of(node)),
      counted(std::move(c)) {}

void incarnation::report_failure() noexcept {
    const std::chrono::milliseconds now = policy.now();
    std::uint64_t word = failures.load(std::memory_order_relaxed);
    while (!failures.compare_exchange_weak(word, failure_record(word).after_failure(policy, now).word(),
                                           std::memory_order_relaxed)) {
    }
}

pick_pool::pick_pool(std::vector<member_ptr> members) : members_(std::move(members)) {
    weights_up_to_.reserve(members_.size());
    double sum = 0;
    for (const member_ptr& m : members_) weights_up_to_.push_back(sum += m->weight);
}

std::size_t pick_pool::by_weight(double part) const noexcept {
    if (members_.empty() || weights_up_to_.back() <= 0) return size();
    const auto at = std::upper_bound(weights_up_to_.begin(), weights_up_to_.end(), part * weights_up_to_.back());
    if (at != weights_up_to_.end()) return static_cast<std::size_t>(at - weights_up_to_.begin());
    // Rounded up to the sum: the last that has any weight.
    const auto last = std::lower_bound(weights_up_to_.begin(), weights_up_to_.end(), weights_up_to_.back());
    return static_cast<std::size_t>(last - weights_up_to_.begin());
}

// ---------------------------------------------------------------------------------------------------------- picker

picker::picker(pick_strategy::kind how, ejection_policy policy, std::uint64_t seed) noexcept
    : how_(how), policy_(policy), seed_(seed) {
    for (std::size_t i = 0; i < stripes; ++i) turns_[i].next = std::uint64_t(i) << 48;  // they never draw the same
}

std::uint64_t picker::next_turn() noexcept {
    std::atomic<std::uint64_t>& next = turns_[stripe_of_thread()].next;
    const std::uint64_t turn = next.load(std::memory_order_relaxed);
    next.store(turn + 1, std::memory_order_relaxed);
    return turn;
}

// Asks for the time when somebody has failed often enough, and once.
class picker::health {
public:
    explicit health(const picker& of) noexcept : of_(of) {}
    bool good(const member_ptr& m) noexcept {
        const failure_record failures(m->counted->failures.load(std::memory_order_relaxed));
        if (!failures.may_be_ejected(of_.policy_)) return true;
        if (!asked_) now_ = of_.policy_.now();
        asked_ = true;
        return !failures.ejected(of_.policy_, now_);
    }

private:
    const picker& of_;
    bool asked_ = false;
    std::chrono::milliseconds now_{0};
};

namespace {

double part_of_one(std::uint64_t drawn) noexcept { return static_cast<double>(drawn >> 11) * 0x1p-53; }

}  // namespace

const member_ptr* picker::next(const pick_pool& from) noexcept {
    if (from.size() == 0) return nullptr;
    const std::uint64_t turn = next_turn(), n = from.size();
    const auto drawn = [&] { return mixed(seed_ + turn * 0x9e3779b97f4a7c15); };  // splitmix64
    switch (how_) {
        case pick_strategy::kind::round_robin: return nth(from, turn % n, turn / n);
        case pick_strategy::kind::random: return nth(from, drawn() % n, drawn() / n);
        case pick_strategy::kind::least_outstanding: return least_outstanding(from, turn);
        case pick_strategy::kind::sticky: return sticky(from, drawn());
        case pick_strategy::kind::weighted: return weighted(from, drawn());
    }
    return nullptr;
}

// The first; where that is ejected, one of those that are not: by `other`, so that each of them gets as much more.
const member_ptr* picker::nth(const pick_pool& from, std::uint64_t first, std::uint64_t other) const noexcept {
    health h(*this);
    if (h.good(from[first])) return &from[first];
    std::uint64_t good = 0;
    for (std::size_t i = 0; i < from.size(); ++i) good += h.good(from[i]);
    if (good == 0) return &from[first];
    std::uint64_t left = other % good;
    const member_ptr* found = &from[first];
    for (std::size_t i = 0; i < from.size(); ++i) {
        if (!h.good(from[i])) continue;
        found = &from[i];
        if (left-- == 0) break;
    }
    return found;
}

// From another place each time: among equals all have their turn.
const member_ptr* picker::least_outstanding(const pick_pool& from, std::uint64_t turn) const noexcept {
    health h(*this);
    const member_ptr *best = nullptr, *best_ejected = nullptr;
    std::uint32_t least = 0, least_ejected = 0;
    for (std::size_t i = 0, at = turn % from.size(); i < from.size(); ++i, at = at + 1 < from.size() ? at + 1 : 0) {
        const std::uint32_t has = from[at]->counted->outstanding.load(std::memory_order_relaxed);
        if (best && has >= least) continue;
        const bool good = h.good(from[at]);
        if (!good && best_ejected && has >= least_ejected) continue;
        (good ? best : best_ejected) = &from[at];
        (good ? least : least_ejected) = has;
        if (good && has == 0) break;
    }
    return best ? best : best_ejected;
}

const member_ptr* picker::sticky(const pick_pool& from, std::uint64_t drawn) noexcept {
    for (;;) {
        std::uint64_t serial = sticky_.load(std::memory_order_relaxed);
        std::size_t at = from.sticky_place().load(std::memory_order_relaxed);
        if (from[at]->counted->serial != serial)
            for (at = 0; at < from.size() && from[at]->counted->serial != serial;) ++at;
        const bool known = at < from.size();
        // The same; where that is ejected, one of those that are not, or still the same when there is none.
        const member_ptr* other = nth(from, known ? at : drawn % from.size(), drawn / from.size());
        if (known && other == &from[at]) {
            from.sticky_place().store(at, std::memory_order_relaxed);
            return other;
        }
        // Where another thread has drawn one meanwhile, that counts for both.
        if (sticky_.compare_exchange_strong(serial, (*other)->counted->serial, std::memory_order_relaxed)) return other;
    }
}

const member_ptr* picker::weighted(const pick_pool& from, std::uint64_t drawn) const noexcept {
    const double part = part_of_one(drawn);
    const std::size_t first = from.by_weight(part);
    if (first == from.size()) return nullptr;
    health h(*this);
    if (h.good(from[first])) return &from[first];
    double sum = 0;
    for (std::size_t i = 0; i < from.size(); ++i)
        if (h.good(from[i])) sum += from[i]->weight;
    // Drawn anew: what has led to an ejected one says little of the others.
    double left = part_of_one(mixed(drawn)) * sum;
    const member_ptr* found = &from[first];
    for (std::size_t i = 0; i < from.size() && sum > 0; ++i) {
        if (from[i]->weight == 0 || !h.good(from[i])) continue;
        found = &from[i];
        if ((left -= from[i]->weight) < 0) break;
    }
    return found;
}

const member_ptr* picker::for_key(const pick_pool& from, std::uint64_t key) const noexcept {
    health h(*this);
    const member_ptr *best = nullptr, *best_ejected = nullptr;
    std::uint64_t highest = 0, highest_ejected = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
        const std::uint64_t score = mixed(from[i]->hash ^ mixed(key));
        if (best && score <= highest) continue;
        const bool good = h.good(from[i]);
        if (!good && best_ejected && score <= highest_ejected) continue;
        (good ? best : best_ejected) = &from[i];
        (good ? highest : highest_ejected) = score;
    }
    return best ? best : best_ejected;
}

}  // namespace zkasio::discovery_detail
