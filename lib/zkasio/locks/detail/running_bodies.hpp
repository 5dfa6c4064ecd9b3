#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/strand.hpp>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <forward_list>
#include <iterator>
#include <typeinfo>
#include <utility>

namespace zkasio::lock_detail {

/// The bodies that run under a lock, see lock_claim::body_begins(), and their executors. Several bodies may run
/// concurrently, or one within another. Most often there is none, or one, and very many contenders may have such a
/// list. On the strand, but for announce().
class running_bodies {
public:
    /// A body is about to begin. From any thread. Either any() sees the announced body, or the caller sees all that was
    /// written before the call of any(), in particular the loss of the lock.
    void announce() noexcept { announced_.fetch_add(1, std::memory_order_acq_rel); }
    /// An announced body begins, on the executor `e`.
    void begin(asio::any_io_executor e) { on_.push_front(std::move(e)); }
    void end(const asio::any_io_executor& e) noexcept {
        ++ended_;
        for (auto before = on_.before_begin(); std::next(before) != on_.end(); ++before)
            if (*std::next(before) == e) {
                on_.erase_after(before);
                return;
            }
    }
    /// Whether an announced body has not ended.
    bool any() noexcept {
        const std::uint32_t running = announced_.fetch_add(0, std::memory_order_acq_rel) - ended_;
        assert(running <= 0x7fff'ffff && "a body has ended that was not announced");
        return running != 0;
    }
    /// The executors of the bodies that have begun and have not ended.
    const std::forward_list<asio::any_io_executor>& executors() const noexcept { return on_; }
    /// Whether a body runs on `e`, or work on `e` was begun by a body: the strand of a body is over the executor on
    /// which the body was begun.
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
