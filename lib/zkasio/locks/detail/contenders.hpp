#pragma once

#include <zkasio/client.hpp>
#include <zkasio/locks/contender_info.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/locks/detail/queue/queue_names.hpp>

#include <asio/awaitable.hpp>

#include <string>
#include <vector>

namespace zkasio::lock_detail {

/// Describes a contender by its node.
contender_info info_of(std::string path, node_data node);

/// All contenders in `directory`, in the order of the queue.
asio::awaitable<std::vector<contender_info>> contenders(client zk, std::string directory, queue_names names);
/// @param lock null if its object was moved from: errc::invalid_argument.
asio::awaitable<std::vector<contender_info>> contenders(client zk, lock_spec_ptr lock);

}  // namespace zkasio::lock_detail
