#pragma once

#include <zkasio/detail/seam/backend.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <string_view>

namespace zkasio::detail {

class core;

/// Throws zkasio::error when the reply is an error: with the operation, the path, and advice where there is any.
void throw_if_failed(const reply& r, std::string_view operation, std::string_view path);
/// As above; operation and path are those of reply::asked.
void throw_if_failed(const reply& r);

/// Returns `c`. Throws errc::invalid_argument if `c` is null, as in an object that was moved from.
const std::shared_ptr<core>& there(const std::shared_ptr<core>& c, std::string_view operation,
                                   std::string_view path = {});

/// Of a caller whose request ends one connection after the other, and who would try again at once: 50 ms, and up to a
/// second when it goes on. Others use the connection in between. A cancellation replaces r.code.
asio::awaitable<void> pause_after_hang_up(reply& r);

}  // namespace zkasio::detail
