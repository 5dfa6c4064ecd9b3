#pragma once

#include <zkasio/detail/requests/wait_table.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <system_error>
#include <utility>

namespace zkasio::detail {

/// Background work (removals of nodes, tasks that tidy up), and the waiters for its end: each waits for the work that
/// had begun before its call of over(), and not for later work. On the strand.
class background_work {
public:
    explicit background_work(wait_table& waits) : waits_(waits) {}
    background_work(const background_work&) = delete;
    background_work& operator=(const background_work&) = delete;

    /// One piece of work, which ends when this object is destroyed. Move-only.
    class piece {
    public:
        piece() noexcept = default;
        piece(piece&& other) noexcept
            : all_(std::exchange(other.all_, nullptr)), generation_(std::exchange(other.generation_, 0)) {}
        piece& operator=(piece&& other) noexcept {
            std::swap(all_, other.all_);
            std::swap(generation_, other.generation_);
            return *this;
        }
        ~piece() {
            if (all_) all_->end(generation_);
        }

    private:
        friend class background_work;
        piece(background_work& all, std::uint64_t generation) noexcept : all_(&all), generation_(generation) {}
        background_work* all_ = nullptr;
        std::uint64_t generation_ = 0;
    };

    piece begin() noexcept;

    bool any() const noexcept;

    /// Fired when all work that has begun so far has ended.
    one_shot_ptr over();

    /// All present and future waiters get `code`: the outcome of the remaining work will not be known.
    void end_all(std::error_code code);

private:
    // The work that has begun between two calls of over().
    struct generation {
        std::size_t pieces = 0;
        one_shot_ptr over;
    };
    void end(std::uint64_t number) noexcept;
    void check() const noexcept;

    wait_table& waits_;
    std::deque<generation> generations_{generation()};  // the last one is growing, and has no waiter yet
    std::uint64_t first_ = 0;                           // the number of the front generation
    std::error_code ended_;                             // see end_all()
};

}  // namespace zkasio::detail
