#pragma once

#include <zkasio/clock.hpp>

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

/// Which items this session claims next, and when it has to list them again. No input, no output, no waiting.
namespace zkasio::queue_detail {

/// The items that are free as far as this session knows. A listing serves until the items in it are used up: a queue of
/// n items is listed a few times, and not n times.
class item_list {
public:
    /// Takes the answers of a listing. @param items in the order in which they are handed out. @param taken the items
    /// that some consumer has claimed.
    void list(std::vector<std::string> items, const std::vector<std::string>& taken, boot_clock::time_point now);
    /// A watch or a timer tells that the listing is outdated.
    void changed() noexcept { is_old_ = true; }
    /// Drops the listing.
    void forget() noexcept;

    /// Whether to list before the next claim. An outdated listing is replaced when it is used up, when a sixteenth of
    /// its items was claimed, or when it is a second old: a newer item may be more urgent. A listing that is not
    /// outdated is never replaced.
    bool must_list(boot_clock::time_point now) const noexcept;

    bool empty() const noexcept { return free_.empty(); }
    std::size_t size() const noexcept { return free_.size(); }
    /// The next items, at most n.
    std::vector<std::string> first(std::size_t n) const;

    /// Removes an item that this session has claimed, or that does not exist any more.
    void remove(const std::string& name);
    /// A transaction that was to claim the first n items was refused, since another consumer has claimed or removed the
    /// item `name`. Likely that consumer has claimed the items behind `name` as well: `name` and the items behind it,
    /// up to the n-th, are left out until the next listing.
    void leave_out(const std::string& name, std::size_t n);
    /// Other consumers have taken items that stood here, so likely the next ones as well: of those behind the first
    /// `from` items, n are left out until the next listing.
    void leave_out_next(std::size_t from, std::size_t n);
    /// Of the first items, n are left to other consumers until the next listing.
    void step_over(std::size_t n);

private:
    std::size_t erase(std::size_t from, std::size_t n);

    std::deque<std::string> free_;
    std::size_t listed_ = 0, used_ = 0;  // the free items of the newest list(); how many have left free_ since
    boot_clock::time_point when_;
    bool is_old_ = true;  // the watches have fired, or there are none, or some items were left out
};

}  // namespace zkasio::queue_detail
