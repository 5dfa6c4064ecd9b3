#pragma once

#include <zkasio/queues/detail/queue_spec.hpp>
#include <zkasio/queues/work_queue_options.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <string>
#include <vector>

/// The operations on a queue that are meant for operators. @param on a patient session, for all of them.
namespace zkasio::queue_detail {

asio::awaitable<work_queue_info> count_items(session on, spec_ptr what);

asio::awaitable<std::vector<dead_item>> list_dead(session on, spec_ptr what);

/// Puts a dead item into the queue again, once. False: there is no such item.
asio::awaitable<bool> revive_item(session on, spec_ptr what, std::string name);

}  // namespace zkasio::queue_detail
