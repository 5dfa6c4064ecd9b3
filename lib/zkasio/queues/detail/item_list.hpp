#pragma once

#include <zkasio/clock.hpp>
#include <zkasio/recipe/reports.hpp>
#include <zkasio/session.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio::queue_detail {

/// How many items are read for the next transaction: fewer while the items are large, so that few are read in vain.
/// No input, no output, no waiting.
class batch_limit {
public:
    static constexpr std::size_t most_bytes = 256 * 1024;  ///< in one transaction, unless its first item has more

    /// @param most items in one transaction.
    explicit batch_limit(std::size_t most) noexcept : most_(most), at_once_(most) {}

    std::size_t at_once() const noexcept { return at_once_; }
    void begin() noexcept {
        items_ = bytes_ = 0;
        is_full_ = false;
    }
    /// Whether an item of this size goes into the transaction, too.
    bool takes(std::size_t size) noexcept {
        bytes_ += size;
        is_full_ = items_ > 0 && bytes_ > most_bytes_;
        if (!is_full_) ++items_;
        return !is_full_;
    }
    /// Of all items since begin(), the one that did not fit included.
    std::size_t bytes() const noexcept { return bytes_; }
    void end() noexcept {
        if (is_full_)
            at_once_ = items_;
        else if (bytes_ <= most_bytes_ / 2)
            at_once_ = std::min(2 * at_once_, most_);
    }
    /// Servers hang up at the transaction of this batch: later ones are half as large.
    void was_too_large() noexcept { most_bytes_ = bytes_ / 2; }

private:
    const std::size_t most_;
    std::size_t most_bytes_ = most_bytes;
    std::size_t at_once_, items_ = 0, bytes_ = 0;
    bool is_full_ = false;
};

/// The items of a round that were found not to be handed out: one warning tells of all.
class refused_items {
public:
    void add(const std::string& name, const std::string& why) {
        if (count_++ == 0) first_ = name + ": " + why;
    }
    /// @param kind of the items: "" or " with a delay".
    void tell(const session& on, const std::string& queue, std::string_view kind) {
        const std::size_t n = std::exchange(count_, 0);
        if (n == 0) return;
        std::string text = "the work_queue " + queue + " has ";
        text += n == 1 ? "an item" : std::to_string(n) + " items";
        text.append(kind) += n == 1 ? " that is not handed out: " : " that are not handed out, the first of them: ";
        log_warning(on, text + std::exchange(first_, {}));
    }

private:
    std::size_t count_ = 0;
    std::string first_;
};

}  // namespace zkasio::queue_detail

/// Which items this session claims next, and when it has to list them again. No input, no output, no waiting.
namespace zkasio::queue_detail {

/// The items that are free as far as this session knows. A listing serves until the items in it are used up: a queue of
/// n items is listed a few times, and not n times.
class item_list {
public:
    /// A listing is asked for: from now on, changed() means that its answers are outdated.
    void begin_listing() noexcept;
    /// Takes the answers of a listing. @param items in the order in which they are handed out. @param taken the items
    /// that some consumer has claimed.
    void list(std::vector<std::string> items, const std::vector<std::string>& taken, boot_clock::time_point now);
    /// A watch or a timer tells that the listing is outdated.
    void changed() noexcept { is_old_ = true; }
    /// Drops the listing; the items that are left out until a time stay so.
    void forget() noexcept;

    /// Whether to list before the next claim. An outdated listing is replaced when it is used up, when a sixteenth of
    /// its items was claimed, or when it is a second old: a newer item may be more urgent. A listing that is not
    /// outdated is never replaced, unless the time of an item that was left out has come.
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

    /// Leaves the item out of all listings until then, for other processes.
    void leave_out_until(const std::string& name, boot_clock::time_point until);
    /// As leave_out_until(), for an item that this process cannot be given. False: this was called before, and the item
    /// has been there ever since, without a remove().
    bool refuse_until(const std::string& name, boot_clock::time_point until);
    /// When the time of the next item comes that is left out; time_point::max(): no item is, or none has a time.
    boot_clock::time_point next_return() const noexcept { return next_return_; }

private:
    void use(const std::string& name);
    std::size_t erase(std::size_t from, std::size_t n);

    std::deque<std::string> free_;
    std::size_t listed_ = 0, used_ = 0;  // the free items of the newest list(); how many have left free_ since
    boot_clock::time_point when_;
    struct time_out {
        boot_clock::time_point until;
        bool is_refused = false;
    };
    std::map<std::string, time_out> until_;  // of items that are, or were, left out until a time
    boot_clock::time_point next_return_ = boot_clock::time_point::max();
    bool is_old_ = true;  // the watches have fired, or there are none, or some items were left out
};

}  // namespace zkasio::queue_detail
