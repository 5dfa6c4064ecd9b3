#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace zkasio::test {

/// What a test began with: descriptors, of sessions among others, and threads of the process; in the directories of
/// fresh_directory() no ephemeral node and no watch.
class base_line {
public:
    /// @param with_servers false: only what the process has. A session whose connection was cut before it could be
    /// closed stays at the servers until it expires.
    explicit base_line(bool with_servers);
    /// What there is beyond that, a line each; empty: nothing. Waits a moment for kernel and servers to learn of an end.
    std::string left_behind() const;

private:
    std::vector<std::string> descriptors_;
    std::size_t threads_;
    bool with_servers_;
};

}  // namespace zkasio::test
