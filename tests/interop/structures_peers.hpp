#pragma once

#include "interop/peer.hpp"

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>

#include <array>
#include <string>
#include <utility>

namespace zkasio::test {

/// The processes with the other libraries' barriers, counters and queues.
struct structures_peers {
    explicit structures_peers(const asio::any_io_executor& e)
        : curator(e, "curator-structures"), kazoo(e, "kazoo-structures") {}
    asio::awaitable<void> ready() {
        co_await curator.ready();
        co_await kazoo.ready();
    }
    asio::awaitable<void> exit() {
        co_await curator.exit();
        co_await kazoo.exit();
    }
    std::array<peer*, 2> all() { return {&curator, &kazoo}; }
    peer curator, kazoo;
};

/// Sends a command, "ID WORD...", and expects this answer.
inline asio::awaitable<void> ask(peer& p, std::string command, std::string answer) {
    p.send(command);
    co_await p.expect(command.substr(0, command.find(' ')), std::move(answer));
}

}  // namespace zkasio::test
