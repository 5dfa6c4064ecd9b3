#pragma once

#include <string>
#include <string_view>

namespace zklock {

/// All of a file, or of the standard input for "-". Throws std::system_error. Blocks: before there is anything that
/// could be late.
std::string read_file(const std::string& name);

/// As zkasio::printable(), but lines stay lines and tabs stay tabs.
std::string printable_lines(std::string_view text);

}  // namespace zklock
