#pragma once

#include "unit/support/fake_server.hpp"

#include <zkasio/locks/mutex.hpp>

#include <algorithm>
#include <cstddef>
#include <string>

namespace zkasio::test {

/// Acquires and releases.
inline asio::awaitable<void> take(mutex lock) {
    lock_guard guard = co_await lock.acquire();
    co_await guard.release();
}

inline std::ptrdiff_t requests_named(const fake_server& s, const std::string& operation) {
    return std::count_if(s.requests.begin(), s.requests.end(),
                         [&](const auto& r) { return operation_name(r.what) == operation; });
}

}  // namespace zkasio::test
