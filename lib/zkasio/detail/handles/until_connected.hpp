#pragma once

#include <zkasio/detail/client/core.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <string>

namespace zkasio::detail {

/// *Completes when* there is a connection; see client::connected(). Errors speak of this operation, and of the path or,
/// without one, of the servers.
asio::awaitable<void> until_connected(core_ptr c, std::string operation, std::string path);

/// The same, and returns the session.
asio::awaitable<session> connected_session(core_ptr c, std::string operation, std::string path);

}  // namespace zkasio::detail
