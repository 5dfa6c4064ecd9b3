#pragma once

#include <string>
#include <string_view>

namespace zklock {

enum class when_to_colour { automatic, always, never };

enum class colour { red, green, yellow, dim, bold };

/// Decides once whether the standard output shows colours: on a terminal whose TERM is set and not "dumb", and not with
/// NO_COLOR in the environment (https://no-color.org), unless told otherwise.
void set_colours(when_to_colour w);

/// `text` in that colour, or as it is. Escape sequences in it are not looked at: see zkasio::printable().
std::string painted(colour c, std::string_view text);

bool output_is_terminal() noexcept;

/// One line on the standard error: "zklock: ...". Never throws; nobody may be listening.
void say(std::string_view text) noexcept;

/// On the standard output. Throws std::system_error when it cannot be written, as on a full disk.
void print(std::string_view text);

/// `text` filled up with blanks to `width` columns.
std::string padded(std::string text, std::size_t width);

}  // namespace zklock
