#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace zkasio::discovery_detail {

/// The number of cache lines for data that all threads write: up to that many threads do not share a line.
inline constexpr std::size_t stripes = 16;
inline constexpr std::size_t cache_line = 64;

/// The index of the stripe that this thread writes to.
inline std::size_t stripe_of_thread() noexcept {
    static std::atomic<std::size_t> threads{0};
    static thread_local const std::size_t mine = threads.fetch_add(1, std::memory_order_relaxed) % stripes;
    return mine;
}

/// A value that changes as a whole, and that any threads read without a lock and without sharing its ownership.
///
/// A std::atomic<std::shared_ptr> of g++ 12 contains a lock: a preempted reader makes all others wait. A pointer per
/// thread would keep old values for as long as the thread lives. Here a reader counts itself at a slot, and then checks
/// that the slot is still the current one. A slot is never freed before the object is, and gets another value only when
/// it is not current and has no readers. Threads count themselves in different cache lines, so that no thread waits for
/// another thread's line. The two orders, "reader counts itself, then looks at current_" and "writer changes current_,
/// then looks at the count", are sequentially consistent: either the reader sees the change, or the writer the reader.
template <class T>
class published {
public:
    explicit published(std::unique_ptr<const T> first) {
        slots_.push_back(std::make_unique<slot>());
        assert(first);
        slots_.front()->value = std::move(first);
        current_ = slots_.front().get();
    }
    published(const published&) = delete;
    published& operator=(const published&) = delete;

    /// Calls `f(value)`, which must not throw, and should be short: the value is kept during the call. Tries again only
    /// when the value was changed in this very moment.
    template <class F>
    auto read(F f) const noexcept {
        for (const std::size_t stripe = stripe_of_thread();;) {
            slot* const s = current_.load();
            const reader here(s->counts[stripe].readers);
            if (current_.load() == s) return f(*s->value);
        }
    }

    /// By one thread at a time. Never waits for readers: values that are still being read are freed by a later set().
    void set(std::unique_ptr<const T> next) {
        assert(next);
        slot& into = unused();
        into.value = std::move(next);
        current_.store(&into);
        for (const auto& s : slots_)
            if (is_unused(*s)) s->value.reset();
    }

private:
    struct alignas(cache_line) reader_count {
        std::atomic<std::uint32_t> readers{0};
    };
    struct slot {
        std::array<reader_count, stripes> counts;
        std::unique_ptr<const T> value;
    };
    class reader {
    public:
        explicit reader(std::atomic<std::uint32_t>& count) noexcept : count_(count) { count_.fetch_add(1); }
        reader(const reader&) = delete;
        reader& operator=(const reader&) = delete;
        ~reader() { count_.fetch_sub(1, std::memory_order_release); }

    private:
        std::atomic<std::uint32_t>& count_;
    };

    bool is_unused(const slot& s) const noexcept {
        if (&s == current_.load()) return false;
        for (const reader_count& c : s.counts)
            if (c.readers.load() != 0) return false;
        return true;
    }

    slot& unused() {
        for (const auto& s : slots_)
            if (is_unused(*s)) return *s;
        slots_.push_back(std::make_unique<slot>());  // at most one more than there are concurrent readers
        return *slots_.back();
    }

    std::vector<std::unique_ptr<slot>> slots_;  // touched only by set()
    std::atomic<slot*> current_{nullptr};
};

}  // namespace zkasio::discovery_detail
