#pragma once

#include <string>

namespace bench {

enum class limit { none, at_least, at_most };

/// Prints a figure in a fixed form, with its target and whether the target was met. scripts/bench.sh makes its tables of
/// these lines.
void ratio(const std::string& name, double value, limit how = limit::none, double target = 0);

}  // namespace bench
