#include <zkasio/discovery/detail/member.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace zkasio::discovery_detail {

// Keeps every sum of weights finite.
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

}  // namespace zkasio::discovery_detail
