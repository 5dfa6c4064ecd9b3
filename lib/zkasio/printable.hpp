#pragma once

#include <zkasio/export.hpp>

#include <string>
#include <string_view>

namespace zkasio {

/// Returns `text`, which another client may have chosen, for a log or a terminal: escapes control characters as "\x1b",
/// also those beyond ASCII, U+0080 to U+009F, and each byte that is not UTF-8.
ZKASIO_EXPORT std::string printable(std::string_view text);

}  // namespace zkasio
