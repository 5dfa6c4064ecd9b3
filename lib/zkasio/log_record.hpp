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

/// One fact of the text, for machines: {"path", "/locks/orders"}.
struct log_field {
    std::string_view key;  ///< a literal: "path", "root", "server", "session", "state", "reason", "source"
    std::string value;
};

/// The argument of client_options::log(): one line of text, without an end of line, and its fields. No record contains
/// credentials. Text from other clients, names of nodes above all, is printable() in all of the record.
class ZKASIO_EXPORT log_record {
public:
    log_record(log_level level, std::string_view text, std::vector<log_field> fields = {});

    log_level level() const noexcept { return level_; }
    const std::string& text() const noexcept { return text_; }
    const std::vector<log_field>& fields() const noexcept { return fields_; }
    /// A sink that only wants the text may take a std::string_view.
    operator std::string_view() const noexcept { return text_; }

private:
    log_level level_;
    std::string text_;
    std::vector<log_field> fields_;
};

/// The sink of client_options::log() while none is set: writes one line to the standard error stream, such as
/// "zkasio: warning: cannot connect: 127.0.0.1:2181: connection refused". Lines that the stream does not take are lost.
/// A daemon that closes its standard streams sets a sink of its own.
ZKASIO_EXPORT void log_to_stderr(const log_record& r);

}  // namespace zkasio
