#pragma once

#include <zkasio/config/config_core.hpp>
#include <zkasio/recipe/node_follower.hpp>

#include <memory>
#include <string>

namespace zkasio::config_detail {

/// What is known when a server has said this. Pure. The last good value stays until there is another one, or, where
/// there is a fallback, until there is no node any more.
config_state state_after(const config_state& last, const node_report& said, const std::string& path,
                         const value_parser& parse, const std::shared_ptr<const void>& fallback);

/// What is wrong, by the exception that is being handled: not more of it than somebody reads.
std::string reason_in_flight();

}  // namespace zkasio::config_detail
