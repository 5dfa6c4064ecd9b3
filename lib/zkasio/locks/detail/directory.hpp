#pragma once

#include <zkasio/client.hpp>
#include <zkasio/locks/detail/acquire_request.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <string>
#include <string_view>

namespace zkasio::lock_detail {

/// Throws errc::invalid_path when `path` cannot be the directory of a lock of this client.
void check_directory(std::string_view recipe, const client& zk, const std::string& path);

/// Creates a recipe's directory, and its missing ancestors, as containers, which the server removes when they have been
/// unused for a while. To be called when a create has found no parent; the caller then repeats that create. So a
/// directory that another client has created is no error, nor is an unknown outcome.
/// @param stays the directory and its missing ancestors are persistent.
asio::awaitable<void> make_directory(session on, std::string path, acl entries, bool stays = false);
asio::awaitable<void> make_directory(session on, lock_spec_ptr of);

}  // namespace zkasio::lock_detail
