#pragma once

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
/// wrap around, as long as fewer than 2^31 numbers lie between two items.
/// Throws errc::foreign_child, which names the child, for a child that is no item. @param directory for this message.
std::vector<std::string> in_order(std::vector<std::string> children, std::string_view directory);

}  // namespace zkasio::queue_detail
