#pragma once

#include "support/lock_directory.hpp"

#include <zkasio/locks/semaphore.hpp>

#include <string>

namespace zkasio::test {

inline std::string leases(const semaphore& s) { return s.path() + "/leases"; }
inline std::string locks(const semaphore& s) { return s.path() + "/locks"; }

/// As Curator's SharedCount writes it.
inline std::string count(int n) {
    std::string data(4, '\0');
    for (int i = 0; i < 4; ++i) data[static_cast<std::size_t>(i)] = static_cast<char>(n >> (24 - 8 * i));
    return data;
}

/// Nothing of it is left at the servers.
inline asio::awaitable<void> until_free(client zk, semaphore s) {
    co_await until_queued(zk, leases(s), 0);
    co_await until_queued(zk, locks(s), 0);
}

}  // namespace zkasio::test
