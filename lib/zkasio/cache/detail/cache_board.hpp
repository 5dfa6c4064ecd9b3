#pragma once

#include <zkasio/cache/cache.hpp>
#include <zkasio/cache/detail/tree_store.hpp>
#include <zkasio/cache/detail/tree_sync.hpp>
#include <zkasio/cache/tree_view.hpp>
#include <zkasio/recipe/events.hpp>

#include <asio/awaitable.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace zkasio::cache_detail {

/// The content of a tree_view.
struct snapshot {
    std::shared_ptr<const std::string> root_path;
    ref_ptr<tree_node> root;  // null: there is no root
    std::size_t size = 0;
    std::uint64_t version = 0;
    bool ready = false, current = false;
};

/// Makes the objects that users see.
struct make_view {
    static cached_node node(const value_ptr& value) noexcept { return cached_node(value.get()); }
    static tree_view tree(std::shared_ptr<const snapshot> of) noexcept { return tree_view(std::move(of)); }
    static cache_changes changes(std::shared_ptr<cache_reader> of) noexcept { return cache_changes(std::move(of)); }
};

/// The limits of the changes that a cache_board keeps for slow readers.
struct board_limits {
    std::size_t changes = 0, bytes = 0;
};

/// Shows the state of a cache to readers on any threads. Keeps, within limits, the changes that some reader has not
/// read yet. For a reader that has missed a dropped change, no change is kept.
class cache_board {
public:
    /// @param events of the client: its close ends all waits.
    cache_board(const operations& events, std::string path, board_limits most)
        : path_(std::move(path)), most_(most), change_(events, mutex_) {}

    const std::string& path() const noexcept { return path_; }

    // ------------------------------------------------------------------------------------------ for the cache
    /// @param next gets its version here.
    void publish(snapshot next, std::vector<tree_delta> changes);
    /// No update follows for the readers: news() throws from now on.
    /// @param hint for messages; a literal.
    void close(std::error_code why, std::string_view hint = {});

    // ------------------------------------------------------------------------------------------ for readers
    tree_view latest() const;

    /// How far a reader has read.
    struct position {
        bool begun = false;
        std::uint64_t notice = 0;  // `notice_` at the reader's last update
        std::uint64_t change = 0;  // the first change that the reader does not know
    };
    /// The next update for a reader; nothing, if there is none yet. Throws when no update can follow.
    std::optional<cache_update> news(position& of);
    /// Called for a reader that is destroyed.
    void forget(const position& of) noexcept;
    /// The number of changes that are kept.
    std::size_t kept() const;
    /// Whether the cache has been ready, once. Throws when the cache can no longer become ready.
    bool ready() const;
    /// Notified when the results of latest(), ready() and news() may have changed.
    change_event& changes() noexcept { return change_; }
    static asio::awaitable<void> until_ready(std::shared_ptr<cache_board> board);

private:
    using change_list = std::deque<tree_delta>;
    void check() const;
    bool misses_some(const position& of) const noexcept { return of.change < first_change_; }
    void leave(const position& of) noexcept;
    void take_first(change_list& into);
    void drop_oldest(change_list& into);
    void drop_read(change_list& into);

    std::string path_;
    board_limits most_;
    mutable std::mutex mutex_;
    std::shared_ptr<const snapshot> latest_;  // null: none yet
    change_list changes_;                     // not yet read by some reader
    std::size_t bytes_ = 0;                   // the size of changes_
    std::uint64_t first_change_ = 0;          // the number of the first of changes_
    std::multiset<std::uint64_t> readers_;    // position::change of each reader that has begun and misses no change
    std::uint64_t notice_ = 0;                // rises with each publish() that gives readers an update
    change_event change_;
    std::error_code closed_;
    std::string_view hint_;  // for the message of closed_
};

/// The implementation of a cache_changes.
class cache_reader {
public:
    explicit cache_reader(std::shared_ptr<cache_board> board) : board_(std::move(board)) {}
    cache_reader(const cache_reader&) = delete;
    cache_reader& operator=(const cache_reader&) = delete;
    ~cache_reader() { board_->forget(at_); }
    static asio::awaitable<cache_update> next(std::shared_ptr<cache_reader> self);

private:
    std::shared_ptr<cache_board> board_;
    one_at_a_time reading_;
    cache_board::position at_;
};

}  // namespace zkasio::cache_detail
