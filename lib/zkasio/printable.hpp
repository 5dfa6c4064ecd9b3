#pragma once

#include <zkasio/export.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace zkasio {

/// Returns `text`, which another client may have chosen, for a log or a terminal: escapes control characters as "\x1b",
/// also those beyond ASCII, U+0080 to U+009F, and each byte that is not UTF-8.
ZKASIO_EXPORT std::string printable(std::string_view text);

/// A session id (session::id(), contender_info::session_id) as ZooKeeper's logs and four-letter commands show it:
/// "0x1000a2f3b4c0001".
ZKASIO_EXPORT std::string session_id_text(std::int64_t id);

}  // namespace zkasio
