#pragma once

#include <zkasio/detail/client/core.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <string>

namespace zkasio::detail {

/// *Completes when* there is a connection; see client::connected(). Errors name `operation`, and `path` or, without a
/// path, the servers.
asio::awaitable<void> until_connected(core_ptr c, std::string operation, std::string path);

/// Like until_connected(), and returns the session.
asio::awaitable<session> connected_session(core_ptr c, view_root root, std::string operation, std::string path);

}  // namespace zkasio::detail
