#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/strand.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <forward_list>
#include <iterator>
#include <typeinfo>
#include <utility>

namespace zkasio::lock_detail {

/// The bodies that run under a lock, see lock_claim::body_begins(), and where they run. Several bodies may run at a
/// time, or one within another; most often there is none, or one, and there may be very many who have such a list.
/// On the strand, but for announce().
class running_bodies {
public:
    /// A body is about to begin. From any thread. Either any() sees that body, or the caller sees whatever was written
    /// before any() was called: that the lock is lost.
    void announce() noexcept { announced_.fetch_add(1, std::memory_order_acq_rel); }
    /// One of those that were announced, and where it runs.
    void begin(asio::any_io_executor e) { on_.push_front(std::move(e)); }
    void end(const asio::any_io_executor& e) noexcept {
        ++ended_;
        for (auto before = on_.before_begin(); std::next(before) != on_.end(); ++before)
            if (*std::next(before) == e) {
                on_.erase_after(before);
                return;
            }
    }
    /// One that was announced has not ended.
    bool any() noexcept { return announced_.fetch_add(0, std::memory_order_acq_rel) != ended_; }
    /// One of them runs there, or what runs there was begun by one: the strand of a body is over the executor that it
    /// was begun on.
    bool on(const asio::any_io_executor& e) const noexcept {
        if (on_.empty()) return false;
        if (std::find(on_.begin(), on_.end(), e) != on_.end()) return true;
        using strand = asio::strand<asio::any_io_executor>;
        // target() of Asio 1.22 does not look at the type.
        return e.target_type() == typeid(strand) && on(e.target<strand>()->get_inner_executor());
    }

private:
    std::forward_list<asio::any_io_executor> on_;
    std::atomic<std::uint32_t> announced_{0};
    std::uint32_t ended_ = 0;
};

}  // namespace zkasio::lock_detail
