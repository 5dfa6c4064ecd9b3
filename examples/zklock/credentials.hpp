#pragma once

#include <string>
#include <vector>

namespace zklock {

/// The variable with "user:password", which commands that zklock runs do not see.
inline constexpr const char* auth_variable = "ZKLOCK_AUTH";

/// Who we are, for the digest scheme, "user:password" each: the lines of `file` (empty ones and those with a '#' first
/// do not count), or $ZKLOCK_AUTH where no file is named. Never from the command line, which everybody on the machine
/// can read.
/// Throws std::runtime_error when the file cannot be read, has a line without ':', or may be read by others than its
/// owner.
std::vector<std::string> digest_credentials(const std::string& file);

/// The first line of the file. Throws std::runtime_error when the file cannot be read, or may be read by others than
/// its owner.
std::string password_in(const std::string& file);

}  // namespace zklock
