#pragma once

#include <zkasio/recipes/contender_info.hpp>
#include <zkasio/recipes/detail/queue_names.hpp>

#include <asio/awaitable.hpp>

#include <string>
#include <vector>

namespace zkasio::recipes::detail {

/// What the node of a contender tells of it.
contender_info info_of(std::string path, node_data node);

/// All who queue in `directory`, in order.
asio::awaitable<std::vector<contender_info>> contenders(client zk, std::string directory, queue_names names);

}  // namespace zkasio::recipes::detail
