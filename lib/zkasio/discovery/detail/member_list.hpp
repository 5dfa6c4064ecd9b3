#pragma once

#include <zkasio/discovery/detail/member.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace zkasio::discovery_detail {

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
