#pragma once

#include <zkasio/export.hpp>

#include <string>
#include <string_view>

namespace zkasio {

/// `text`, which somebody else may have chosen, for a log or a terminal: control characters as "\x1b".
ZKASIO_EXPORT std::string printable(std::string_view text);

}  // namespace zkasio
