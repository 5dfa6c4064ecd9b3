#pragma once

#include <asio/any_io_executor.hpp>

#include <algorithm>
#include <forward_list>
#include <iterator>
#include <utility>

namespace zkasio::recipes::detail {

/// Where the work under a lock runs, see lock_claim::body_begins(). Several bodies may run at a time, or one within another; most often
/// there is none, or one, and there may be very many who have such a list.
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
    bool on(const asio::any_io_executor& e) const noexcept { return std::find(on_.begin(), on_.end(), e) != on_.end(); }

private:
    std::forward_list<asio::any_io_executor> on_;
};

}  // namespace zkasio::recipes::detail
