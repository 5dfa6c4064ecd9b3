#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The names of the items in a queue's directory. No input, no output, no waiting.
namespace zkasio::queue_detail {

/// The name of a new item, up to its sequence number: that of kazoo's LockingQueue.
std::string item_prefix(int priority);

/// The part of an item's name in front of the sequence number. Empty: this is no item's name.
std::string_view prefix_of(std::string_view name) noexcept;

/// The items in the order in which they are handed out: by priority, and then as they were put. Sequence numbers may
/// wrap around, as long as fewer than 2^31 numbers lie between two items. Throws errc::foreign_child, which names the
/// child, for a child that is no item. @param directory for this message.
std::vector<std::string> in_order(std::vector<std::string> children, std::string_view directory);

/// A time by the servers' clocks.
using server_time = std::chrono::time_point<std::chrono::system_clock, std::chrono::milliseconds>;

/// The name of an item that waits for a time, up to its sequence number: "<time, in hexadecimal>-<priority>-".
std::string later_prefix(server_time due, int priority);

struct later_item {
    server_time due;
    std::string name;
    std::string prefix;  // of its name as an item that waits no longer
};
/// Nothing: no such name.
std::optional<later_item> parse_later(std::string name);

/// The name of a dead item, which tells the item's name, and is another one if a re-created queue uses that name again.
std::string dead_name(std::string_view name, std::int64_t czxid);
/// The name of the node below a dead item that tells why the item is dead.
inline constexpr std::string_view dead_reason = "reason";
/// The name of the item, up to its sequence number; empty: this is no dead item's name.
std::string_view prefix_of_dead(std::string_view name) noexcept;

}  // namespace zkasio::queue_detail
