#pragma once

#include <zkasio/detail/requests/wait_table.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <system_error>
#include <utility>

namespace zkasio::detail {

/// What goes on although nobody awaits it (removals of nodes, tasks that tidy up), and those who wait until all of it
/// that had begun when they asked is over. Whatever begins later does not keep them waiting. On the strand.
class background_work {
public:
    explicit background_work(wait_table& waits) : waits_(waits) {}
    background_work(const background_work&) = delete;
    background_work& operator=(const background_work&) = delete;

    /// One piece of work, until this is destroyed. Move-only.
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

    /// Fired when all is over that has begun by now.
    one_shot_ptr over();

    /// Whoever waits, from now on too, gets `code`: nobody will know what becomes of the rest.
    void end_all(std::error_code code);

private:
    // What has begun between one who asked and the next.
    struct generation {
        std::size_t pieces = 0;
        one_shot_ptr over;
    };
    void end(std::uint64_t number) noexcept;

    wait_table& waits_;
    std::deque<generation> generations_{generation()};  // the last one is growing; nobody waits for it yet
    std::uint64_t first_ = 0;                           // the number of the one in front
    std::error_code ended_;                             // see end_all()
};

}  // namespace zkasio::detail
