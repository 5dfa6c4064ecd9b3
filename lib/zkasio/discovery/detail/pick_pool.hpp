#pragma once

#include <zkasio/discovery/detail/member_list.hpp>
#include <zkasio/discovery/detail/published.hpp>
#include <zkasio/discovery/provider.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace zkasio::discovery_detail {

/// The members that may be picked. Never changes.
class pick_pool {
public:
    pick_pool() = default;
    explicit pick_pool(member_list members) : members_(std::move(members)) {}

    const member_list& members() const noexcept { return members_; }
    std::size_t size() const noexcept { return members_.size(); }
    const member_ptr& operator[](std::size_t i) const noexcept { return members_[i]; }
    /// The index of the first member at which the sum of the weights exceeds `part`, in [0, 1), of the total; size() if
    /// the total is 0.
    std::size_t by_weight(double part) const noexcept { return members_.by_weight(part * members_.weight()); }

    /// The place where `picker` has last seen its sticky member.
    std::atomic<std::size_t>& sticky_place() const noexcept { return sticky_place_; }

private:
    member_list members_;
    mutable std::atomic<std::size_t> sticky_place_{0};
};

/// Decides which member of a pool is next. For any threads concurrently, without a lock and without memory allocation.
class picker {
public:
    picker(pick_strategy::kind how, ejection_policy policy, std::uint64_t seed) noexcept;

    /// Null if there is no member to pick. If all are ejected, none of them counts as ejected: an instance that fails
    /// is better than none.
    const member_ptr* next(const pick_pool& from) noexcept;
    /// Rendezvous hashing: the member whose hash with the key is the highest.
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
    // Each thread goes round on its own. Two threads that share a counter may get the same turn, which does no harm.
    struct alignas(cache_line) turn_of_thread {
        std::atomic<std::uint64_t> next{0};
    };
    std::array<turn_of_thread, stripes> turns_;
    std::atomic<std::uint64_t> sticky_{0};  // the serial of the sticky member; 0: none yet
};

}  // namespace zkasio::discovery_detail
