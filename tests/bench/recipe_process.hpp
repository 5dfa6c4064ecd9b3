#pragma once

#include <sys/types.h>

#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

namespace bench {

/// A process that uses the recipes of one library: zkasio (recipe_worker.cpp), or one of recipe_peers/README.md, which
/// tells what all of them understand. It is told by lines on its standard input. Killed when destroyed.
class recipe_process {
public:
    /// *Returns* when it has its session. @param library zkasio, curator or kazoo.
    recipe_process(const std::string& library, const std::string& server, int session_timeout_ms);
    recipe_process(const recipe_process&) = delete;
    recipe_process& operator=(const recipe_process&) = delete;
    ~recipe_process() { kill(); }

    pid_t pid() const noexcept { return pid_; }
    void tell(const std::string& command);
    /// What follows the word `first` in the next answer. Throws std::runtime_error for any other.
    std::istringstream answer(const std::string& first);
    double time_of(const std::string& first);  ///< see now()
    void give_up_after(int seconds) noexcept;  ///< an answer that takes longer is an exception of answer()
    void kill() noexcept;                      ///< SIGKILL, and waits for its end

private:
    pid_t pid_ = -1;
    std::FILE* answers_ = nullptr;
    int line_ = -1;
};

/// zkasio, and if `with_peers`, the others that were built.
std::vector<std::string> recipe_libraries(bool with_peers);

/// Resident memory, bytes.
double resident_memory(pid_t process);

}  // namespace bench
