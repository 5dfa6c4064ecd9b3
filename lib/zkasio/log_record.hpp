#pragma once

#include <zkasio/export.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkasio {

enum class log_level : std::uint8_t { debug, info, warning, error };
ZKASIO_EXPORT std::string_view to_string(log_level l) noexcept;

/// What a text says, for machines: {"path", "/locks/orders"}.
struct log_field {
    std::string_view key;  ///< a literal: "path", "server", "session", "state", "reason", "source"
    std::string value;
};

/// What client_options::log() is given: one line, without an end of line. Credentials are in none. What others have
/// chosen, names of nodes above all, is printable() in all of it.
class ZKASIO_EXPORT log_record {
public:
    log_record(log_level level, std::string_view text, std::vector<log_field> fields = {});

    log_level level() const noexcept { return level_; }
    const std::string& text() const noexcept { return text_; }
    const std::vector<log_field>& fields() const noexcept { return fields_; }
    /// A sink may take a std::string_view, if it wants no more than the text.
    operator std::string_view() const noexcept { return text_; }

private:
    log_level level_;
    std::string text_;
    std::vector<log_field> fields_;
};

}  // namespace zkasio
