#pragma once

#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/log_record.hpp>

#include <string>
#include <vector>

namespace zkasio {

/// Logs a line to client_options::log(), at log_level::warning. From any thread; does nothing with a moved-from client.
/// For writers of recipes.
ZKASIO_EXPORT void log_warning(const client& zk, std::string text, std::vector<log_field> fields = {});

}  // namespace zkasio
