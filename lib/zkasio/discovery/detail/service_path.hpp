#pragma once

#include <string>

namespace zkasio::discovery_detail {

/// `<base>/<name>`. Throws errc::invalid_path, also if `name` is not the name of one node.
std::string service_path(const std::string& base, const std::string& name);

}  // namespace zkasio::discovery_detail
