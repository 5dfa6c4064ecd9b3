#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/strand.hpp>

#include <algorithm>
#include <forward_list>
#include <iterator>
#include <typeinfo>
#include <utility>

namespace zkasio::lock_detail {

/// Where the work under a lock runs, see lock_claim::body_begins(). Several bodies may run at a time, or one within
/// another; most often there is none, or one, and there may be very many who have such a list.
class running_bodies {
public:
    void begin(asio::any_io_executor e) { on_.push_front(std::move(e)); }
    void end(const asio::any_io_executor& e) noexcept {
        for (auto before = on_.before_begin(); std::next(before) != on_.end(); ++before)
            if (*std::next(before) == e) {
                on_.erase_after(before);
                return;
            }
    }
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
};

}  // namespace zkasio::lock_detail
