#pragma once

#include <zkasio/acl.hpp>

#include <string>
#include <string_view>

namespace zklock {

/// "open", "creator", "read-only", or entries as zkCli writes them: "world:anyone:r,digest:joe:<hash>:cdrwa",
/// "auth::r". Throws std::invalid_argument.
zkasio::acl parse_acl(std::string_view text);

/// One entry as parse_acl() takes it.
std::string to_text(const zkasio::acl_entry& e);
/// "cdrwa"
std::string to_text(zkasio::permission p);

/// Whether anybody at all may do more than read.
bool open_to_the_world(const zkasio::acl& a);

}  // namespace zklock
