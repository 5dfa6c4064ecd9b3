#pragma once

#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/log_record.hpp>
#include <zkasio/session.hpp>

#include <string>
#include <vector>

namespace zkasio {

/// Logs a line to client_options::log(), at log_level::warning. From any thread; does nothing with a moved-from client
/// or session. For writers of recipes.
ZKASIO_EXPORT void log_warning(const client& zk, std::string text, std::vector<log_field> fields = {});
ZKASIO_EXPORT void log_warning(const session& on, std::string text, std::vector<log_field> fields = {});

}  // namespace zkasio
