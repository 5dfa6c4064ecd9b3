#pragma once

#include <zkasio/cache/cache_changes.hpp>
#include <zkasio/cache/detail/snapshot.hpp>
#include <zkasio/cache/detail/tree_sync.hpp>
#include <zkasio/change_event.hpp>
#include <zkasio/client.hpp>
#include <zkasio/one_at_a_time.hpp>
#include <zkasio/one_shot_event.hpp>

#include <asio/awaitable.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace zkasio::cache_detail {

/// Where a cache shows what it knows, and its readers look: on any threads. Remembers the last changes, and no more
/// than that many.
class cache_board {
public:
    /// @param events of the client whose close ends all waits.
    cache_board(const operations& events, std::string path, std::size_t most_changes)
        : path_(std::move(path)), most_(most_changes), change_(events) {}

    const std::string& path() const noexcept { return path_; }

    // ------------------------------------------------------------------------------------------ for the cache
    /// @param next its version is set here.
    void publish(snapshot next, std::vector<tree_delta> changes);
    /// Nothing follows.
    /// @param hint for messages; a literal.
    void close(std::error_code why, std::string_view hint = {});

    // ------------------------------------------------------------------------------------------ for readers
    tree_view latest() const;

    /// How far a reader is.
    struct position {
        bool begun = false;
        std::uint64_t notice = 0;  // the last that it knows
        std::uint64_t change = 0;  // the first that it does not know
    };
    /// What is new for a reader; nothing, if there is nothing yet. Throws when nothing can follow.
    std::optional<cache_update> news(position& of) const;
    /// Whether it has been ready, once. Throws when it cannot become so any more.
    bool ready() const;
    /// Fired when there is something new for anybody.
    one_shot_event next_change();
    static asio::awaitable<void> until_ready(std::shared_ptr<cache_board> board);

private:
    void check() const;

    std::string path_;
    std::size_t most_;
    mutable std::mutex mutex_;
    std::shared_ptr<const snapshot> latest_;  // null: none yet
    std::deque<tree_delta> changes_;          // the last ones
    std::uint64_t first_change_ = 0;          // the number of the first of them
    std::uint64_t notice_ = 0;
    change_event change_;
    std::error_code closed_;
    std::string_view hint_;  // of closed_
};

/// Behind a cache_changes.
class cache_reader {
public:
    explicit cache_reader(std::shared_ptr<cache_board> board) : board_(std::move(board)) {}
    static asio::awaitable<cache_update> next(std::shared_ptr<cache_reader> self);

private:
    std::shared_ptr<cache_board> board_;
    one_at_a_time reading_;
    cache_board::position at_;
};

}  // namespace zkasio::cache_detail
