#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace zkasio::test {

/// What a test began with: descriptors, of sessions among others, and threads of the process; in the directories of
/// fresh_directory() no ephemeral node and no watch.
class base_line {
public:
    base_line();
    /// What there is beyond that, a line each; empty: nothing. Waits a moment for kernel and servers to learn of an end.
    std::string left_behind() const;

private:
    std::vector<std::string> descriptors_;
    std::size_t threads_;
};

}  // namespace zkasio::test
