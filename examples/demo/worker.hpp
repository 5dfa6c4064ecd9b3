#pragma once

#include "options.hpp"

namespace demo {

/// One of the processes: hundreds of coroutines that contend for the lock over one session, with commands on the
/// standard input and events on the standard output. Returns the exit status.
int run_worker(worker_options options);

}  // namespace demo
