#pragma once

#include <zkasio/detail/backend.hpp>

#include <functional>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

namespace zkasio::detail {

/// Something that happens once and that any number of operations may wait for. Lives on the strand.
struct one_shot_state {
    bool done = false;
    std::error_code code;         ///< what the waiters complete with
    std::function<void()> then;  ///< called on the strand before the waiters are woken; may be empty

    void add(op_id id) {
        if (first_ == 0 && !others_) {
            first_ = id;
            return;
        }
        if (!others_) others_ = std::make_unique<std::set<op_id>>();
        others_->insert(id);
    }
    void leave(op_id id) {
        if (first_ == id)
            first_ = 0;
        else if (others_)
            others_->erase(id);
    }
    template <class F>
    void wake_all(F wake) {
        if (const op_id id = std::exchange(first_, 0)) wake(id);
        const auto others = std::move(others_);
        if (!others) return;
        for (const op_id id : *others) wake(id);
    }

private:
    op_id first_ = 0;  // most often there is only one: it needs no memory
    std::unique_ptr<std::set<op_id>> others_;  // there may be very many who leave one by one
};

using one_shot_ptr = std::shared_ptr<one_shot_state>;

}  // namespace zkasio::detail
