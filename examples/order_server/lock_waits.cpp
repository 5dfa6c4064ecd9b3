#include "lock_waits.hpp"

#include <algorithm>
#include <cstddef>

namespace order_server {

namespace {

// @param percent of the values are not longer. Reorders them.
double part(std::vector<std::chrono::nanoseconds>& of, std::size_t percent) {
    if (of.empty()) return 0;
    const auto at = of.begin() + static_cast<std::ptrdiff_t>((of.size() - 1) * percent / 100);
    std::nth_element(of.begin(), at, of.end());
    return std::chrono::duration<double, std::milli>(*at).count();
}

}  // namespace

void lock_waits::lock_wait(const zkasio::lock_wait_report& w) {
    if (w.code || w.refused) return;
    const std::lock_guard lock(mutex_);
    waits_.push_back(w.ended - w.asked);
}

lock_waits::summary lock_waits::take() {
    std::vector<std::chrono::nanoseconds> waits;
    {
        const std::lock_guard lock(mutex_);
        waits.swap(waits_);
    }
    summary s;
    s.half_ms = part(waits, 50);
    s.most_ms = part(waits, 95);
    return s;
}

}  // namespace order_server
