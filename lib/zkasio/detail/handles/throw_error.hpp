#pragma once

#include <zkasio/detail/seam/backend.hpp>

#include <memory>
#include <string_view>

namespace zkasio::detail {

class core;

/// Throws zkasio::error when the reply is one: with the operation, the path, and what to do where that is known.
void throw_if_failed(const reply& r, std::string_view operation, std::string_view path);
/// The same, speaking of reply::asked.
void throw_if_failed(const reply& r);

/// `c`, which is null in an object that was moved from: then throws errc::invalid_argument.
const std::shared_ptr<core>& there(const std::shared_ptr<core>& c, std::string_view operation,
                                   std::string_view path = {});

}  // namespace zkasio::detail
