#pragma once

#include <zkasio/acl.hpp>
#include <zkasio/clock.hpp>
#include <zkasio/export.hpp>
#include <zkasio/queues/queue_layout.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace zkasio {

/// How an item is put into a work_queue: `put_options().priority(10)`.
class ZKASIO_EXPORT put_options {
public:
    put_options() {}
    /// Items of a lower number are handed out first (100). A put fails with errc::invalid_argument if the layout cannot
    /// express the number: kazoo's have 0 to 999, curator_priority() any `int`, and the others no priorities at all.
    put_options& priority(int n) {
        priority_ = n;
        return *this;
    }
    /// The item is handed out this much later at the earliest, by the servers' clocks (0). Throws
    /// errc::invalid_argument for a negative duration, and for more than 100 years.
    put_options& delay(any_duration d);

    /// The id of an item of queue_layout::curator_id(): required there, and refused by other layouts, with
    /// errc::invalid_argument. From 1 to 512 bytes. As in Curator's nodes, '/' and '|' become '_'.
    put_options& id(std::string text) {
        id_ = std::move(text);
        return *this;
    }

    /// Nothing: none was given.
    std::optional<int> priority() const noexcept { return priority_; }
    std::chrono::milliseconds delay() const noexcept { return delay_; }
    const std::optional<std::string>& id() const noexcept { return id_; }

private:
    std::optional<int> priority_;
    std::chrono::milliseconds delay_{0};
    std::optional<std::string> id_;
};

/// The options of a work_queue. All processes that use a queue give the same ones.
class ZKASIO_EXPORT work_queue_options {
public:
    work_queue_options() {}
    /// The nodes of the queue (queue_layout::kazoo_locking()).
    work_queue_options& layout(queue_layout nodes) {
        layout_ = std::move(nodes);
        return *this;
    }
    /// The ACL of all nodes of the queue (client_options::default_acl()).
    work_queue_options& acl(zkasio::acl entries) {
        acl_ = std::move(entries);
        return *this;
    }

    /// A put waits while this many items are in the queue, claimed ones included, but not those whose delay has not
    /// passed (0: never); in queue_layout::curator_delay(), those as well. Exceeded by at most the puts that are under
    /// way at the same time.
    work_queue_options& most_items(std::size_t n) {
        most_items_ = n;
        return *this;
    }
    /// An item that was claimed this often without being done is not handed out again, but moved to the dead items (0:
    /// never), see work_queue::dead(). Throws errc::invalid_argument for a negative number.
    work_queue_options& most_deliveries(int n);

    const queue_layout& layout() const noexcept { return layout_; }
    const zkasio::acl& acl() const noexcept { return acl_; }
    std::size_t most_items() const noexcept { return most_items_; }
    int most_deliveries() const noexcept { return most_deliveries_; }

private:
    queue_layout layout_ = queue_layout::kazoo_locking();
    zkasio::acl acl_ = default_acl();
    std::size_t most_items_ = 0;
    int most_deliveries_ = 0;
};

/// How work_queue::consume() runs its body.
class ZKASIO_EXPORT consume_options {
public:
    consume_options() {}
    /// How many items are worked on at the same time (1). Throws errc::invalid_argument for 0.
    consume_options& parallel(std::size_t n);
    /// After a failure the item rests for `first` (a second), after each further failure for twice as long, and for
    /// `longest` (a minute) at most. 32 items of a process may rest at the same time, see delivery::again(): of further
    /// items another process gets the next delivery at once. consume() then waits for `first` after the first failure
    /// of an item, so that an outage of what the bodies need spends few deliveries. Throws errc::invalid_argument for
    /// negative durations.
    consume_options& pause(any_duration first, any_duration longest = std::chrono::minutes(1));

    std::size_t parallel() const noexcept { return parallel_; }
    /// The pause after this delivery has failed. @param attempt from 1 on.
    std::chrono::milliseconds pause_after(int attempt) const noexcept;

private:
    std::size_t parallel_ = 1;
    std::chrono::milliseconds first_pause_{1000}, longest_pause_{60'000};
};

/// How many items a queue has.
struct work_queue_info {
    std::size_t waiting = 0;  ///< not claimed; in queue_layout::curator_delay(), whatever their time
    std::size_t claimed = 0;
    std::size_t later = 0;  ///< put with a delay that has not passed, or that no consumer has noticed yet
    std::size_t dead = 0;
    /// How long the oldest item that waits has waited since its put, or since the end of its delay; by the servers'
    /// clocks. Nothing: none waits, or the client may not write into the queue's receipts.
    std::optional<std::chrono::milliseconds> oldest;
};

/// An item that was rejected, or delivered too often: consumers are not given it.
struct dead_item {
    std::string name;                             ///< for work_queue::revive()
    std::string item;                             ///< its data; whole, if the layout's frame is broken
    std::string reason;                           ///< see delivery::reject()
    std::chrono::system_clock::time_point since;  ///< by the servers' clocks
};

}  // namespace zkasio
