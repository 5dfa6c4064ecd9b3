#pragma once

#include <zkasio/config/config_core.hpp>
#include <zkasio/error.hpp>
#include <zkasio/recipe/node_follower.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace zkasio::config_detail {

/// The failure `e` of a request as the failure of `operation`, with its code, its outcome_unknown(), and a hint.
error failure_of(std::string_view operation, const std::string& path, const error& e);

/// The state that follows from the report `said` of a server. Pure. The last good value stays until there is another
/// good value, or, if there is a fallback, until the node is gone.
config_state state_after(const config_state& last, const node_report& said, const std::string& path,
                         const value_parser& parse, const std::shared_ptr<const void>& fallback);

/// The text of the exception that is being handled, cut to a length that can be read.
std::string reason_in_flight();

}  // namespace zkasio::config_detail
