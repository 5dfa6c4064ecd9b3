#pragma once

#include "lock_view.hpp"

#include <string>
#include <vector>

namespace zklock {

/// A line for each lock: path, kind, how many hold it and wait, since when, and who. For pipes and for people.
std::string lines_of_locks(const std::vector<lock_view>& locks);

/// The same for a screen that shows how often locks are granted: with a header, and what may be cut off at the end.
std::string table_of_locks(const std::vector<lock_view>& locks);

}  // namespace zklock
