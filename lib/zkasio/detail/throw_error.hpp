#pragma once

#include <zkasio/detail/backend.hpp>

#include <string_view>

namespace zkasio::detail {

/// Throws zkasio::error when the reply is one: with the operation, the path, and what to do where that is known.
void throw_if_failed(const reply& r, std::string_view operation, std::string_view path);

}  // namespace zkasio::detail
