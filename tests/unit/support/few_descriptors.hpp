#pragma once

#include "support/catch.hpp"

#include <zkasio/detail/base/owned_descriptor.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace zkasio::test {

/// Takes all descriptors of the process but some, as long as it lives.
class few_descriptors {
public:
    /// Says so where it is not: UBSan looks at an object through a pipe, and takes what it cannot look at for broken.
    static bool is_possible() {
        if (has_ubsan) WARN("SKIPPED: UBSan needs descriptors of its own");
        return !has_ubsan;
    }

    explicit few_descriptors(std::size_t left) {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        rlimit lower = before_;
        lower.rlim_cur = std::min<rlim_t>(before_.rlim_cur, 1024);
        ::setrlimit(RLIMIT_NOFILE, &lower);
        for (int one = ::open("/dev/null", O_RDONLY | O_CLOEXEC); one >= 0; one = ::fcntl(one, F_DUPFD_CLOEXEC, 0))
            taken_.emplace_back(one);
        for (; left > 0; --left) taken_.pop_back();
    }
    ~few_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
    few_descriptors(const few_descriptors&) = delete;
    few_descriptors& operator=(const few_descriptors&) = delete;

private:
    // g++ does not tell: there, the preset that has both says that AddressSanitizer is there.
#if defined(__clang__)
    static constexpr bool has_ubsan = __has_feature(undefined_behavior_sanitizer);
#elif defined(__SANITIZE_ADDRESS__)
    static constexpr bool has_ubsan = true;
#else
    static constexpr bool has_ubsan = false;
#endif

    rlimit before_{};
    std::vector<detail::owned_descriptor> taken_;
};

}  // namespace zkasio::test
