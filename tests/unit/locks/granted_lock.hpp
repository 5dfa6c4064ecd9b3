#pragma once

#include <zkasio/locks/detail/nodes_claim.hpp>
#include <zkasio/locks/lock_guard.hpp>
#include <zkasio/session.hpp>

#include <asio/awaitable.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zkasio::test {

/// A guard of a lock that was granted without asking anybody: of the node "/lock".
inline lock_guard guard_on(const session& s) {
    std::vector<std::string> paths(1, "/lock");
    return lock_guard(std::make_shared<lock_detail::nodes_claim>(s, std::move(paths), 1, "/lock", boot_clock::now()));
}
inline asio::awaitable<lock_guard> acquired_on(session s) { co_return guard_on(s); }

}  // namespace zkasio::test
