#pragma once

#include <zkasio/queues/detail/queue_spec.hpp>
#include <zkasio/queues/work_queue_options.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace zkasio::queue_detail {

/// The items that no consumer has claimed, the oldest first, whatever their priorities: in the order of their sequence
/// numbers, which may wrap around. Other children are left out. Pure.
std::vector<std::string> oldest_first(const item_names& layout, std::vector<std::string> items,
                                      const std::vector<std::string>& taken);

/// How long the oldest item that waits has waited, by the servers' clocks. Nothing: none waits, or the client may not
/// write the receipt that tells the servers' time. @param on patient.
asio::awaitable<std::optional<std::chrono::milliseconds>> age_of_oldest(session on, spec_ptr what);

}  // namespace zkasio::queue_detail

/// The operations on a queue that are meant for operators. @param on a patient session, for all of them.
namespace zkasio::queue_detail {

asio::awaitable<work_queue_info> count_items(session on, spec_ptr what);

asio::awaitable<std::vector<dead_item>> list_dead(session on, spec_ptr what);

/// Puts a dead item into the queue again, once. False: there is no such item.
asio::awaitable<bool> revive_item(session on, spec_ptr what, std::string name);

}  // namespace zkasio::queue_detail
