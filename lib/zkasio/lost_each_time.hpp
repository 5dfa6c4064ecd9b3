#pragma once

#include <zkasio/error.hpp>
#include <zkasio/export.hpp>

#include <cstddef>
#include <string_view>

namespace zkasio {

/// For an operation that repeats a write which was lost with its connection, and was certainly not applied: after so
/// many losses in a row it fails with lost_each_time(), for servers that hang up at this write do so each time.
inline constexpr int most_lost_writes = 5;

/// zk_errc::connection_loss, whose hint names the size. For writers of recipes. @param bytes of the path and the data;
/// 0: not known.
ZKASIO_EXPORT error lost_each_time(std::string_view operation, std::string_view path, std::size_t bytes);

}  // namespace zkasio
