#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace zklock {

/// Whether the standard output is a terminal that can be drawn on: TERM names one, and not "dumb".
bool output_is_screen() noexcept;

struct screen_size {
    std::size_t rows = 24, columns = 80;
};
/// As it is now; 24 rows of 80 columns where the terminal does not tell.
screen_size size_of_screen() noexcept;

/// How many columns a line takes. Escape sequences of painted() take none, wide characters two.
std::size_t columns_of(std::string_view line) noexcept;
/// As much of a line as fits into that many columns.
std::string cut_to_width(std::string_view line, std::size_t columns);

/// What replaces the contents of a screen with `text`, whose lines are cut to the width. When there are more lines than
/// rows, a line says how many are left out. The last row is for `footer`, which may be empty.
std::string drawn(std::string_view text, std::string_view footer, screen_size size);

}  // namespace zklock
