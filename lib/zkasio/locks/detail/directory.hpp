#pragma once

#include <zkasio/client.hpp>
#include <zkasio/locks/detail/lock_spec.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <string>
#include <string_view>

namespace zkasio::lock_detail {

/// Throws errc::invalid_path when `path` cannot be the directory of a lock of this client.
void check_directory(std::string_view recipe, const client& zk, const std::string& path);

/// Creates a recipe's directory, and what is missing above it, as containers: the server removes them when nobody has
/// used them for a while. That somebody else does so is fine, and so is not to know whether it was done: to be called
/// when a create has found no parent, and that create to be repeated.
/// @param stays it, and what was missing above it, are persistent.
asio::awaitable<void> make_directory(session on, std::string path, acl entries, bool stays = false);
asio::awaitable<void> make_directory(session on, lock_spec_ptr of);

}  // namespace zkasio::lock_detail
