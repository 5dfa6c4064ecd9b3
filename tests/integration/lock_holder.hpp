#pragma once

#include "support/test_client.hpp"

#include <zkasio/locks/shared_mutex.hpp>

#include <optional>

namespace zkasio::test {

/// Takes a lock, tells, and keeps it until it is cancelled or told to go.
struct holder {
    std::optional<lock_guard> guard;
    asio::awaitable<void> read(shared_mutex lock) { guard.emplace(co_await lock.acquire_shared()); }
    asio::awaitable<void> write(shared_mutex lock) { guard.emplace(co_await lock.acquire()); }
};

inline asio::awaitable<void> until_granted(const holder& h) {
    auto granted = [&]() -> asio::awaitable<bool> { co_return h.guard.has_value(); };
    co_await eventually(granted);
}

}  // namespace zkasio::test
