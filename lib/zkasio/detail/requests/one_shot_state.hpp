#pragma once

#include <zkasio/detail/seam/backend.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

namespace zkasio::detail {

/// An event that happens once and that any number of operations may wait for. Lives on the strand; `done` may be read
/// on any thread, which then sees all that was written before the event.
struct one_shot_state {
    std::atomic<bool> done{false};
    std::error_code code;  ///< the waiters complete with this code

    /// Calls `f` on the strand before the waiters are woken. Several functions are called in the order of registration.
    void call(std::function<void()> f) {
        if (!call_)
            call_ = std::move(f);
        else if (other_calls_)
            other_calls_->push_back(std::move(f));
        else
            other_calls_ = std::make_unique<std::vector<std::function<void()>>>(1, std::move(f));
    }
    void forget_calls() noexcept {
        call_ = nullptr;
        other_calls_.reset();
    }
    template <class Caller>
    void take_calls(Caller caller) {
        if (const auto first = std::exchange(call_, nullptr)) caller(first);
        if (const auto others = std::move(other_calls_))
            for (const auto& f : *others) caller(f);
    }

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
    std::function<void()> call_;  // most often there is none, or only one
    std::unique_ptr<std::vector<std::function<void()>>> other_calls_;
    op_id first_ = 0;  // the first waiter, usually the only one: needs no memory
    std::unique_ptr<std::set<op_id>> others_;  // may be very many, which leave one by one
};

using one_shot_ptr = std::shared_ptr<one_shot_state>;

}  // namespace zkasio::detail
