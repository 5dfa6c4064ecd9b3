#pragma once

#include <string>

namespace zkasio::discovery_detail {

/// `<base>/<name>`. Throws errc::invalid_path, also for a name that is no name of one node.
std::string service_path(const std::string& base, const std::string& name);

}  // namespace zkasio::discovery_detail
