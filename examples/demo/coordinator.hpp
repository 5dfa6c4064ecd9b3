#pragma once

#include "options.hpp"

namespace demo {

/// Starts the workers, disturbs them, and compares the books at the end. Returns the exit status: 0 if every check has
/// passed.
int run_coordinator(run_options options);

}  // namespace demo
