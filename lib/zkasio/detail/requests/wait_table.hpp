#pragma once

#include <zkasio/detail/base/fork_mark.hpp>
#include <zkasio/detail/seam/backend.hpp>
#include <zkasio/detail/seam/request.hpp>
#include <zkasio/detail/telemetry/logger.hpp>

#include <atomic>
#include <cassert>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <set>
#include <system_error>
#include <type_traits>
#include <unordered_map>
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
    bool has_calls() const noexcept { return bool(call_); }
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

/// How a wait has ended: the code with which the awaited event was fired, client_closed, or operation_aborted.
struct wait_end {
    std::error_code code;
};

/// The destination of an operation's outcome, for example the executor of the coroutine that awaits it. Holds a
/// `Target`, which has `void deliver(Outcome&&) noexcept`, in place: there is one receiver per operation, and none
/// allocates memory. Move-only.
/// @tparam Room for the target, in bytes.
template <class Outcome, std::size_t Room>
class basic_receiver {
public:
    using outcome = Outcome;

    basic_receiver() noexcept = default;
    template <class Target>
    explicit basic_receiver(Target target) noexcept : actions_(&actions_of<Target>) {
        static_assert(sizeof(Target) <= Room && alignof(Target) <= alignof(void*), "there is no room for this");
        static_assert(std::is_nothrow_move_constructible_v<Target>);
        ::new (static_cast<void*>(target_)) Target(std::move(target));
    }
    basic_receiver(basic_receiver&& other) noexcept : actions_(std::exchange(other.actions_, nullptr)) {
        if (actions_) actions_->move(other.target_, target_);
    }
    basic_receiver& operator=(basic_receiver&& other) noexcept {
        if (this == &other) return *this;
        clear();
        actions_ = std::exchange(other.actions_, nullptr);
        if (actions_) actions_->move(other.target_, target_);
        return *this;
    }
    ~basic_receiver() { clear(); }

    /// Whether a target still waits for the outcome.
    explicit operator bool() const noexcept { return actions_ != nullptr; }

    /// Once.
    void deliver(Outcome&& o) noexcept {
        assert(actions_ && "each operation has one outcome");
        basic_receiver to = std::move(*this);
        to.actions_->deliver(to.target_, std::move(o));
    }

private:
    struct actions {
        void (*deliver)(void* target, Outcome&& o) noexcept;
        void (*move)(void* from, void* to) noexcept;  // and destroys what it was moved from
        void (*destroy)(void* target) noexcept;
    };
    template <class Target>
    static constexpr actions actions_of{
        [](void* target, Outcome&& o) noexcept { static_cast<Target*>(target)->deliver(std::move(o)); },
        [](void* from, void* to) noexcept {
            Target* const source = static_cast<Target*>(from);
            ::new (to) Target(std::move(*source));
            source->~Target();
        },
        [](void* target) noexcept { static_cast<Target*>(target)->~Target(); },
    };
    void clear() noexcept {
        if (const actions* a = std::exchange(actions_, nullptr)) a->destroy(target_);
    }

    const actions* actions_ = nullptr;
    alignas(void*) std::byte target_[Room];
};

/// For a wait: room for a coroutine's handler, and its executor with outstanding work. There may be very many waits.
using receiver = basic_receiver<wait_end, 64>;
/// For a request: room also for the address of the place that the reply is put in.
using request_receiver = basic_receiver<reply, 72>;

/// The operations that wait for an event. There may be very many, and they may wait for long. On the strand.
class wait_table {
public:
    wait_table(const logger& log, const fork_mark& made_here) : log_(log), made_here_(made_here) {}

    /// `to` gets the code that `event` is fired with.
    void wait(op_id id, const one_shot_ptr& event, receiver to);

    /// The event happens: the functions given to then() are called, and all waiters complete with `code`. Once; later
    /// calls do nothing.
    void fire(const one_shot_ptr& it, std::error_code code = {});

    /// Calls `f` when `it` is fired, after the functions given earlier; at once if `it` was fired already. An exception
    /// of `f` is logged.
    void then(one_shot_state& it, std::function<void()> f);

    /// Ends one wait with operation_aborted. False: there is no wait with this id.
    bool cancel(op_id id);

    /// No event will happen from now on: a wait that begins later gets `code` at once.
    void no_more(std::error_code code) noexcept { after_the_end_ = code; }
    /// Ends all waits, except those for `but`.
    void end_all(std::error_code code, const one_shot_ptr& but);
    /// Drops all waits without completing them.
    void clear() { const auto gone = std::exchange(waits_, {}); }

    std::size_t size() const noexcept { return waits_.size(); }

private:
    struct entry {
        receiver to;
        one_shot_ptr event;
    };
    void end(op_id id, std::error_code code);

    const logger& log_;
    const fork_mark& made_here_;
    std::unordered_map<op_id, entry> waits_;
    std::error_code after_the_end_;
};

}  // namespace zkasio::detail
