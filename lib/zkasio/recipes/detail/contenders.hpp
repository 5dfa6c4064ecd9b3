#pragma once

#include <zkasio/recipes/contender_info.hpp>
#include <zkasio/recipes/detail/queue_names.hpp>

#include <asio/awaitable.hpp>

#include <string>
#include <vector>

namespace zkasio::recipes::detail {

/// All who queue in `directory`, in order.
asio::awaitable<std::vector<contender_info>> contenders(client zk, std::string directory, queue_names names);

}  // namespace zkasio::recipes::detail
