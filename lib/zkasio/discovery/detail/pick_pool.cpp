#include <zkasio/discovery/detail/pick_pool.hpp>

#include <chrono>

namespace zkasio::discovery_detail {

// ---------------------------------------------------------------------------------------------------------- picker

picker::picker(pick_strategy::kind how, ejection_policy policy, std::uint64_t seed) noexcept
    : how_(how), policy_(policy), seed_(seed) {
    for (std::size_t i = 0; i < stripes; ++i) turns_[i].next = std::uint64_t(i) << 48;  // stripes draw different turns
}

std::uint64_t picker::next_turn() noexcept {
    std::atomic<std::uint64_t>& next = turns_[stripe_of_thread()].next;
    const std::uint64_t turn = next.load(std::memory_order_relaxed);
    next.store(turn + 1, std::memory_order_relaxed);
    return turn;
}

// Reads the clock at most once, and only if an instance has failed often enough to be ejected.
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

// `first`; if ejected, one of the members that are not: chosen by `other`, so that each gets the same additional share.
const member_ptr* picker::nth(const pick_pool& from, std::uint64_t first, std::uint64_t other) const noexcept {
    health h(*this);
    if (h.good(from[first])) return &from[first];
    std::uint64_t good = 0;
    from.members().for_each([&](const member_ptr& m) { good += h.good(m); });
    if (good == 0) return &from[first];
    std::uint64_t left = other % good;
    const member_ptr* found = &from[first];
    from.members().visit_from(0, [&](std::size_t, const member_ptr& m) {
        if (!h.good(m)) return true;
        found = &m;
        return left-- != 0;
    });
    return found;
}

// Begins at another place each time: so equally loaded members take turns.
const member_ptr* picker::least_outstanding(const pick_pool& from, std::uint64_t turn) const noexcept {
    health h(*this);
    const member_ptr *best = nullptr, *best_ejected = nullptr;
    std::uint32_t least = 0, least_ejected = 0;
    from.members().visit_from(turn % from.size(), [&](std::size_t, const member_ptr& m) {
        const std::uint32_t has = m->counted->outstanding.load(std::memory_order_relaxed);
        if (best && has >= least) return true;
        const bool good = h.good(m);
        if (!good && best_ejected && has >= least_ejected) return true;
        (good ? best : best_ejected) = &m;
        (good ? least : least_ejected) = has;
        return !good || has > 0;
    });
    return best ? best : best_ejected;
}

const member_ptr* picker::sticky(const pick_pool& from, std::uint64_t drawn) noexcept {
    for (;;) {
        std::uint64_t serial = sticky_.load(std::memory_order_relaxed);
        std::size_t at = from.sticky_place().load(std::memory_order_relaxed);
        if (from[at]->counted->serial != serial) {
            at = from.size();
            from.members().visit_from(0, [&](std::size_t i, const member_ptr& m) {
                if (m->counted->serial == serial) at = i;
                return at != i;
            });
        }
        const bool known = at < from.size();
        // The known member; if it is ejected, one of those that are not, or still the known one if there is none.
        const member_ptr* other = nth(from, known ? at : drawn % from.size(), drawn / from.size());
        if (known && other == &from[at]) {
            from.sticky_place().store(at, std::memory_order_relaxed);
            return other;
        }
        // If another thread has drawn a member concurrently, that member is picked by both threads.
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
    from.members().for_each([&](const member_ptr& m) { sum += h.good(m) ? m->weight : 0; });
    // Drawn again: the number that has led to an ejected member says little about the others.
    double left = part_of_one(mixed(drawn)) * sum;
    const member_ptr* found = &from[first];
    if (sum == 0) return found;
    from.members().visit_from(0, [&](std::size_t, const member_ptr& m) {
        if (m->weight == 0 || !h.good(m)) return true;
        found = &m;
        return (left -= m->weight) >= 0;
    });
    return found;
}

const member_ptr* picker::for_key(const pick_pool& from, std::uint64_t key) const noexcept {
    health h(*this);
    const member_ptr *best = nullptr, *best_ejected = nullptr;
    std::uint64_t highest = 0, highest_ejected = 0;
    from.members().for_each([&](const member_ptr& m) {
        const std::uint64_t score = mixed(m->hash ^ mixed(key));
        if (best && score <= highest) return;
        const bool good = h.good(m);
        if (!good && best_ejected && score <= highest_ejected) return;
        (good ? best : best_ejected) = &m;
        (good ? highest : highest_ejected) = score;
    });
    return best ? best : best_ejected;
}

}  // namespace zkasio::discovery_detail
