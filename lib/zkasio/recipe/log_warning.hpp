#pragma once

#include <zkasio/client.hpp>
#include <zkasio/export.hpp>
#include <zkasio/log_record.hpp>

#include <string>
#include <vector>

namespace zkasio {

/// A line for client_options::log(), of log_level::warning. From any thread; does nothing with a client that was moved
/// from. For writers of recipes.
ZKASIO_EXPORT void log_warning(const client& zk, std::string text, std::vector<log_field> fields = {});

}  // namespace zkasio
