#pragma once

#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <string>
#include <string_view>

namespace zkasio::lock_detail {

/// Throws errc::invalid_path when `path` cannot be the directory of a lock.
void check_directory(std::string_view recipe, const std::string& path);

/// Creates a recipe's directory, and what is missing above it, as containers: the server removes them when nobody has
/// used them for a while. That somebody else does so is fine, and so is not to know whether it was done: to be called
/// when a create has found no parent, and that create to be repeated.
asio::awaitable<void> make_directory(session on, std::string path, acl entries);

}  // namespace zkasio::lock_detail
