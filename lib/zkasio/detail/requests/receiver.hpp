#pragma once

#include <zkasio/detail/seam/reply.hpp>

#include <cassert>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace zkasio::detail {

/// The destination of an operation's outcome, for example the executor of the coroutine that awaits it. Holds a
/// `Target`, which has `void deliver(reply&&) noexcept`, in place: there is one receiver per operation, and none
/// allocates memory. Move-only.
/// @tparam Room for the target, in bytes.
template <std::size_t Room>
class basic_receiver {
public:
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
    void deliver(reply&& r) noexcept {
        assert(actions_ && "each operation has one outcome");
        basic_receiver to = std::move(*this);
        to.actions_->deliver(to.target_, std::move(r));
    }

private:
    struct actions {
        void (*deliver)(void* target, reply&& r) noexcept;
        void (*move)(void* from, void* to) noexcept;  // and destroys what it was moved from
        void (*destroy)(void* target) noexcept;
    };
    template <class Target>
    static constexpr actions actions_of{
        [](void* target, reply&& r) noexcept { static_cast<Target*>(target)->deliver(std::move(r)); },
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
using receiver = basic_receiver<64>;
/// For a request: room also for the address of the place that the reply is put in.
using request_receiver = basic_receiver<72>;

}  // namespace zkasio::detail
