#pragma once

#include "support/test_server.hpp"

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace zkasio::test {

/// A program that uses another library's locks, in a process and a session of its own: peers/README.md tells what it
/// understands. Does not outlive the object. One thread.
class peer {
public:
    /// @param name curator, kazoo or gozk. Throws std::system_error.
    explicit peer(asio::any_io_executor executor, std::string name, std::string servers = shared_servers());
    peer(const peer&) = delete;
    peer& operator=(const peer&) = delete;
    ~peer();

    const std::string& name() const noexcept;

    /// *Completes when* it has its session. As expect().
    asio::awaitable<void> ready();

    /// "ID acquire mutex /lock"
    void send(std::string_view line);

    /// The next answer to the commands of `id`, without the ID. Answers to other IDs keep. One waiter for each ID.
    /// *Fails with* std::runtime_error when the process ends, and when there is no answer within a minute.
    asio::awaitable<std::string> expect(std::string id);

    /// Expects "acquired", and returns the path of the node.
    asio::awaitable<std::string> acquired(std::string id);

    /// Expects exactly this answer.
    asio::awaitable<void> expect(std::string id, std::string answer);

    /// Has an answer to `id` arrived that nobody has asked for?
    bool answered(const std::string& id) const;

    /// SIGKILL: its session stays until it expires.
    void kill() noexcept;

    /// *Completes when* it has closed its session and ended.
    asio::awaitable<void> exit();

private:
    struct state;
    std::shared_ptr<state> state_;
};

}  // namespace zkasio::test
