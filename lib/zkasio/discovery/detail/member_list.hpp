#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/discovery/service_instance.hpp>
#include <zkasio/recipe/stable_hash.hpp>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace zkasio::discovery_detail {

/// When an instance is ejected because of failures, and for how long.
struct ejection_policy {
    std::uint16_t failures = 2;  ///< 0: never
    std::chrono::milliseconds time{30'000};
    std::chrono::milliseconds (*now)() noexcept = &boot_time;

    static std::chrono::milliseconds boot_time() noexcept {
        return std::chrono::duration_cast<std::chrono::milliseconds>(boot_clock::now().time_since_epoch());
    }
};

/// The failures of one instance, in one word that a reader loads at once. The rules:
///
///   - F1: the first failure begins a record. A failure that comes `time` or more after that begins a new record.
///   - F2: with the failure that brings the count to policy.failures, the instance is ejected for `time`.
///   - F3: while the instance is ejected, further failures do not count: these uses began before the ejection.
///   - F4: when the time is over, the record is no longer valid.
class failure_record {
public:
    constexpr failure_record() noexcept = default;
    constexpr explicit failure_record(std::uint64_t word) noexcept : word_(word) {}
    constexpr std::uint64_t word() const noexcept { return word_; }

    /// False: the instance is certainly not ejected. True: see ejected(), which also looks at the time.
    constexpr bool may_be_ejected(const ejection_policy& p) const noexcept {
        return p.failures != 0 && count() >= p.failures;
    }
    constexpr bool ejected(const ejection_policy& p, std::chrono::milliseconds now) const noexcept {
        return may_be_ejected(p) && !is_over(p, now);
    }
    constexpr failure_record after_failure(const ejection_policy& p, std::chrono::milliseconds now) const noexcept {
        if (p.failures == 0) return {};
        if (ejected(p, now)) return *this;
        const std::uint64_t counted = count() == 0 || is_over(p, now) ? 1 : count() + 1;
        return {counted == 1 || counted >= p.failures ? now : since(), counted};
    }

private:
    constexpr failure_record(std::chrono::milliseconds since, std::uint64_t count) noexcept
        : word_(static_cast<std::uint64_t>(since.count()) << 16 | count) {}
    constexpr std::uint64_t count() const noexcept { return word_ & 0xffff; }
    constexpr std::chrono::milliseconds since() const noexcept {
        return std::chrono::milliseconds(static_cast<std::int64_t>(word_ >> 16));
    }
    constexpr bool is_over(const ejection_policy& p, std::chrono::milliseconds now) const noexcept {
        return now - since() >= p.time;
    }

    std::uint64_t word_ = 0;  // the number of failures (lower 16 bits), and since when
};

/// `<base>/<name>`. Throws errc::invalid_path, also if `name` is not the name of one node.
std::string service_path(const std::string& base, const std::string& name);

/// The counts of an instance, for as long as its node is not re-created. Writing to the node keeps the counts.
struct incarnation {
    incarnation(std::uint64_t n, ejection_policy p) noexcept : serial(n), policy(p) {}
    void report_failure() noexcept;

    const std::uint64_t serial;  ///< above 0; unique within a provider
    const ejection_policy policy;
    std::atomic<std::uint32_t> outstanding{0};
    std::atomic<std::uint64_t> failures{0};  ///< a failure_record
};

/// One state of an instance. Only the counts change.
struct member {
    member(std::string n, service_instance i, double w, std::shared_ptr<incarnation> c);
    const std::string node;  ///< name of the node
    const service_instance instance;
    const double weight;
    const std::uint64_t hash;  ///< of `node`
    const std::shared_ptr<incarnation> counted;
};
using member_ptr = std::shared_ptr<const member>;

using detail::hash_of;  // the same in every process, as pick_for() requires
using detail::mixed;

/// Members in an order, in chunks that copies of the list share: a copy costs a pointer for each chunk, and a change
/// the copy of one chunk. So a change of one member of very many does not touch all members.
class member_list {
public:
    member_list() = default;
    /// The members, in this order.
    explicit member_list(const std::vector<member_ptr>& all);

    std::size_t size() const noexcept { return chunks_.empty() ? 0 : chunks_.back().end; }
    bool empty() const noexcept { return chunks_.empty(); }
    const member_ptr& operator[](std::size_t i) const noexcept;
    const member_ptr& front() const noexcept {
        assert(!empty());
        return chunks_.front().of->members.front();
    }
    /// The sum of all weights.
    double weight() const noexcept { return chunks_.empty() ? 0 : chunks_.back().weight_up_to; }
    /// The index of the first member at which the sum of the weights exceeds `sum`; if there is none, of the last
    /// member with a weight. size() if all weights are 0.
    std::size_t by_weight(double sum) const noexcept;

    /// Only for a list in the order of the names of the nodes: adds the member, or replaces the member of the same
    /// name.
    void set(member_ptr m);
    void erase(std::string_view node);

    /// Calls `f(i, member)` for each member from `first` on, then for the members before, until `f` returns false.
    template <class F>
    void visit_from(std::size_t first, F f) const {
        if (visit(first, size(), f)) visit(0, first, f);
    }
    template <class F>
    void for_each(F f) const {
        for (const part& p : chunks_)
            for (const member_ptr& m : p.of->members) f(m);
    }

private:
    static constexpr std::size_t most = 64;  // the most members in a chunk
    struct chunk {
        std::vector<member_ptr> members;  // never empty
        double weight = 0;
    };
    using chunk_ptr = std::shared_ptr<const chunk>;
    struct part {
        chunk_ptr of;
        std::size_t end = 0;      // the number of members up to the end of this part
        double weight_up_to = 0;  // the weight of these members
    };

    std::size_t part_with(std::size_t i) const noexcept;
    std::size_t part_for(std::string_view node) const noexcept;
    std::size_t begin_of(std::size_t p) const noexcept { return p == 0 ? 0 : chunks_[p - 1].end; }
    double weight_before(std::size_t p) const noexcept { return p == 0 ? 0 : chunks_[p - 1].weight_up_to; }
    static chunk_ptr chunk_of(std::vector<member_ptr> members);
    void sum_up(std::size_t from) noexcept;

    template <class F>
    bool visit(std::size_t i, std::size_t end, F& f) const {
        for (std::size_t p = i < end ? part_with(i) : 0; i < end; ++p)
            for (const std::size_t begin = begin_of(p), last = std::min(end, chunks_[p].end); i < last; ++i)
                if (!f(i, chunks_[p].of->members[i - begin])) return false;
        return true;
    }

    std::vector<part> chunks_;
};

}  // namespace zkasio::discovery_detail
