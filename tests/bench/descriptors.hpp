#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace bench {

/// Lets the process have as many descriptors as it may, and returns how many.
inline std::size_t raise_descriptor_limit() {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    return files.rlim_cur;
}

}  // namespace bench
