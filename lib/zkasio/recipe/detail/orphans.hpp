#pragma once

#include <zkasio/detail/client/core.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

/// Ephemeral nodes of a resumed session that this process has not made: see toolbox::remove_orphans(). From any thread.
namespace zkasio::detail {

void begin_to_remove_orphans(core_ptr core, session on, std::string key, std::string directory,
                             std::function<bool(const std::string&)> is_one);

asio::awaitable<std::optional<std::int64_t>> find_orphan(core_ptr core, session on, std::string path);
asio::awaitable<std::optional<std::int64_t>> no_orphan();

}  // namespace zkasio::detail
