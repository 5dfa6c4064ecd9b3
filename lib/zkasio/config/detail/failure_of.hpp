#pragma once

#include <zkasio/error.hpp>

#include <string>
#include <string_view>

namespace zkasio::config_detail {

/// The failure `e` of a request as the failure of `operation`, with its code, its outcome_unknown(), and a hint.
error failure_of(std::string_view operation, const std::string& path, const error& e);

}  // namespace zkasio::config_detail
