#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include <optional>
#include <string>
#include <thread>

namespace zkasio::test {

/// A peer on the loopback that is no ZooKeeper, or behaves like none. It serves any number of connections, on a thread
/// of its own.
class impostor {
public:
    enum class then { go_on, hang_up, reset };

    /// Answers a handshake, and whatever it is sent afterwards, with `answer` (none: with what it was sent), and then
    /// does what `next` says.
    explicit impostor(std::optional<std::string> answer, then next = then::go_on);
    ~impostor();
    impostor(const impostor&) = delete;
    impostor& operator=(const impostor&) = delete;

    std::string address() const;

private:
    asio::awaitable<void> serve();
    asio::awaitable<void> talk(asio::ip::tcp::socket s);

    asio::io_context io_;
    std::optional<std::string> answer_;
    then next_;
    asio::ip::tcp::acceptor acceptor_{io_, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
    std::thread thread_;
};

}  // namespace zkasio::test
