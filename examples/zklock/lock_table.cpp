#include "lock_table.hpp"

#include "screen.hpp"
#include "terminal.hpp"

#include <zkasio/printable.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>

namespace zklock {
namespace {

using zkasio::printable;

std::string in_columns(std::string text, std::size_t width) {
    const std::size_t used = columns_of(text);
    if (used < width) text.append(width - used, ' ');
    return text;
}

std::string right_aligned(const std::string& text, std::size_t width) {
    return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

// Who holds it, and what is not as it should be.
std::string holders_of(const lock_view& v) {
    const std::vector<contender> holders = v.holders();
    std::string text = holders.empty() ? "-" : describe(holders.front());
    if (holders.size() > 1) text += " and " + std::to_string(holders.size() - 1) + " more";
    const bool orphan = std::any_of(v.contenders.begin(), v.contenders.end(),
                                    [](const contender& c) { return c.session_id == 0; });
    if (orphan) text += painted(colour::red, "  a node is not ephemeral");
    if (!v.foreign.empty() && v.kind != directory_kind::other)
        text += painted(colour::yellow, "  " + std::to_string(v.foreign.size()) + " foreign");
    return text;
}

std::string since_when(const lock_view& v) {
    const std::vector<contender> holders = v.holders();
    return holders.empty() ? "-" : held_text(holders.front());
}

std::string grants_per_second(const lock_view& v) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.1f", v.grants ? v.grants->per_second : 0.0);
    return text;
}

// Longer paths make their own lines longer, and not all.
std::size_t width_of_paths(const std::vector<lock_view>& locks) {
    std::size_t width = 0;
    for (const lock_view& v : locks) width = std::max(width, columns_of(printable(v.path)));
    return std::min<std::size_t>(width, 48);
}

}  // namespace

std::string lines_of_locks(const std::vector<lock_view>& locks) {
    const std::size_t width = width_of_paths(locks);
    std::string text;
    for (const lock_view& v : locks)
        text += painted(colour::bold, in_columns(printable(v.path), width)) + "  " + padded(summary(v), 28) + "  " +
                padded(since_when(v), 7) + "  " + holders_of(v) + "\n";
    return text;
}

std::string table_of_locks(const std::vector<lock_view>& locks) {
    const std::size_t width = width_of_paths(locks);
    std::string text = painted(colour::dim, "grants/s  hold  wait  held     kind             " +
                                                padded("lock", width) + "  holder") + "\n";
    for (const lock_view& v : locks) {
        const std::size_t holding = v.holders().size();
        text += right_aligned(grants_per_second(v), 8) + "  " + right_aligned(std::to_string(holding), 4) + "  " +
                right_aligned(std::to_string(v.contenders.size() - holding), 4) + "  " + padded(since_when(v), 7) +
                "  " + padded(std::string(name_of(v.kind)), 15) + "  " +
                painted(colour::bold, in_columns(printable(v.path), width)) + "  " + holders_of(v) + "\n";
    }
    return text;
}

}  // namespace zklock
