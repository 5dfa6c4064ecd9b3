#pragma once

#include "support/lock_directory.hpp"
#include "support/test_client.hpp"

#include <zkasio/locks/lock_guard.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zkasio::test {

/// Sorted; none when the node is missing.
asio::awaitable<std::vector<std::string>> children_of(client zk, std::string path);

/// What the servers say they watch at `directory` and below, whoever asked for it.
std::vector<std::string> watched_below(const std::string& directory);
/// Waits until that is nothing, and the client has nothing under way.
asio::awaitable<void> until_quiet(test_client zk, std::string directory);

/// How many requests the servers have received from this session.
long requests_of(const session& s);

/// The number that the server gave to the guard's node.
std::int32_t sequence_of(const lock_guard& guard);

/// Lets the event loop turn `n` times, the network included.
asio::awaitable<void> turns(int n);

/// Starts `attempt` again and again, at most `most` times, and cancels it after more and more steps of the event loop,
/// until it ended by itself three times. How often it was cancelled.
asio::awaitable<int> cancel_everywhere(std::function<asio::awaitable<void>()> attempt, int most = 200);

/// Acquires in a coroutine of its own, and keeps the guard.
class taker {
public:
    taker(asio::any_io_executor executor, asio::awaitable<lock_guard> acquiring);
    bool has_it() const { return guard_->has_value(); }
    bool ended() const { return running_.ended(); }
    void cancel() { running_.cancel(); }
    /// Waits; fails with what acquire() has failed with.
    asio::awaitable<void> got() const;
    asio::awaitable<std::error_code> code() const { return running_.code(); }
    lock_guard& guard() const { return guard_->value(); }
    void release() { guard_->reset(); }

private:
    std::shared_ptr<std::optional<lock_guard>> guard_;
    running running_;
};

}  // namespace zkasio::test
