#pragma once

#include <zkasio/discovery/detail/failure_record.hpp>
#include <zkasio/discovery/detail/stripes.hpp>
#include <zkasio/discovery/pick_strategy.hpp>
#include <zkasio/discovery/service_instance.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace zkasio::discovery_detail {

/// What is counted of an instance for as long as its node is the same one, whatever is written into it.
struct incarnation {
    incarnation(std::uint64_t n, ejection_policy p) noexcept : serial(n), policy(p) {}
    void report_failure() noexcept;

    const std::uint64_t serial;  ///< above 0; another one for each of a provider
    const ejection_policy policy;
    std::atomic<std::uint32_t> outstanding{0};
    std::atomic<std::uint64_t> failures{0};  ///< a failure_record
};

/// One state of an instance. Only what is counted changes.
struct member {
    member(std::string n, service_instance i, double w, std::shared_ptr<incarnation> c);
    const std::string node;  ///< name of the node
    const service_instance instance;
    const double weight;
    const std::uint64_t hash;  ///< of `node`
    const std::shared_ptr<incarnation> counted;
};
using member_ptr = std::shared_ptr<const member>;

/// FNV-1a, 64 bits: the same in every process, which is what pick_for() is about.
std::uint64_t hash_of(std::string_view text) noexcept;
/// The finalizer of splitmix64: a bijection that spreads what differs in one bit over all of them.
std::uint64_t mixed(std::uint64_t x) noexcept;

/// Those that may be picked. Never changes.
class pick_pool {
public:
    pick_pool() = default;
    explicit pick_pool(std::vector<member_ptr> members);

    std::size_t size() const noexcept { return members_.size(); }
    const member_ptr& operator[](std::size_t i) const noexcept { return members_[i]; }
    /// The first at which the sum of the weights exceeds this part, in [0, 1), of the whole; size() if that is 0.
    std::size_t by_weight(double part) const noexcept;

    /// Where `picker` has seen its sticky one.
    std::atomic<std::size_t>& sticky_place() const noexcept { return sticky_place_; }

private:
    std::vector<member_ptr> members_;
    std::vector<double> weights_up_to_;
    mutable std::atomic<std::size_t> sticky_place_{0};
};

/// Decides which member of a pool is next. Any threads at once, without a lock and without memory.
class picker {
public:
    picker(pick_strategy::kind how, ejection_policy policy, std::uint64_t seed) noexcept;

    /// Null when there is none. When all are ejected, this counts for none of them: to ask somebody who fails is better
    /// than to ask nobody.
    const member_ptr* next(const pick_pool& from) noexcept;
    /// Rendezvous hashing: the one whose hash with the key is the highest.
    const member_ptr* for_key(const pick_pool& from, std::uint64_t key) const noexcept;

private:
    class health;
    std::uint64_t next_turn() noexcept;
    const member_ptr* nth(const pick_pool& from, std::uint64_t first, std::uint64_t other) const noexcept;
    const member_ptr* least_outstanding(const pick_pool& from, std::uint64_t turn) const noexcept;
    const member_ptr* sticky(const pick_pool& from, std::uint64_t drawn) noexcept;
    const member_ptr* weighted(const pick_pool& from, std::uint64_t drawn) const noexcept;

    const pick_strategy::kind how_;
    const ejection_policy policy_;
    const std::uint64_t seed_;
    // Each thread goes round by itself. Two that share one may get the same turn, which does no harm.
    struct alignas(cache_line) turn_of_thread {
        std::atomic<std::uint64_t> next{0};
    };
    std::array<turn_of_thread, stripes> turns_;
    std::atomic<std::uint64_t> sticky_{0};  // the serial of the one that is picked again and again; 0: none yet
};

}  // namespace zkasio::discovery_detail
