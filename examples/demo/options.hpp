#pragma once

#include <chrono>
#include <string>

namespace demo {

/// Of the coordinator.
struct run_options {
    std::string servers = "127.0.0.1:2181";
    int processes = 4;
    int coroutines = 200;  ///< in each process
    std::chrono::seconds duration{20};
    std::chrono::milliseconds session_timeout{3000};  ///< of the workers
};

/// Of one worker, as the coordinator passes them on.
struct worker_options {
    std::string servers;
    std::string root;  ///< see nodes
    std::string name;
    int coroutines = 0;
    std::chrono::milliseconds session_timeout{};
};

}  // namespace demo
