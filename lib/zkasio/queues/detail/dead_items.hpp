#pragma once

#include <zkasio/queues/detail/queue_spec.hpp>
#include <zkasio/queues/work_queue_options.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <string>
#include <vector>

/// What operators want to know of a queue. All sessions are patient.
namespace zkasio::queue_detail {

asio::awaitable<work_queue_info> count_items(session on, spec_ptr what);

asio::awaitable<std::vector<dead_item>> list_dead(session on, spec_ptr what);

/// Puts a dead item into the queue again, once. False: there is no such item.
asio::awaitable<bool> revive_item(session on, spec_ptr what, std::string name);

}  // namespace zkasio::queue_detail
