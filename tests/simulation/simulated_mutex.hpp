#pragma once

#include "simulation/queue_scenario.hpp"

#include <zkasio/locks/mutex.hpp>

namespace zkasio::test {

inline mutex mutex_of(client zk, std::string id) {
    return {std::move(zk), lock_directory, mutex_options().data(std::move(id))};
}

inline asio::awaitable<lock_guard> acquire_mutex(client zk, std::string id, lock_kind) {
    const mutex lock = mutex_of(zk, id);
    co_return co_await lock.acquire();
}

inline asio::awaitable<std::optional<lock_guard>> try_acquire_mutex(client zk, std::string id, lock_kind) {
    const mutex lock = mutex_of(zk, id);
    co_return co_await lock.try_acquire();
}

inline const lock_under_test simulated_mutex{acquire_mutex, try_acquire_mutex};

}  // namespace zkasio::test
