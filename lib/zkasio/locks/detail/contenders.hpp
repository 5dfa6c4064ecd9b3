#pragma once

#include <zkasio/client.hpp>
#include <zkasio/locks/contender_info.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/locks/detail/queue_names.hpp>

#include <asio/awaitable.hpp>

#include <string>
#include <vector>

namespace zkasio::lock_detail {

/// What the node of a contender tells of it.
contender_info info_of(std::string path, node_data node);

/// All who queue in `directory`, in order.
asio::awaitable<std::vector<contender_info>> contenders(client zk, std::string directory, queue_names names);
/// @param lock null: errc::invalid_argument, since its object was moved from.
asio::awaitable<std::vector<contender_info>> contenders(client zk, lock_spec_ptr lock);

}  // namespace zkasio::lock_detail
