#pragma once

#include <zkasio/error.hpp>

#include <string>
#include <string_view>

namespace zkasio::config_detail {

/// What a request has failed with, as the failure of `operation`: with its reason, and what else it says.
error failure_of(std::string_view operation, const std::string& path, const error& e);

}  // namespace zkasio::config_detail
