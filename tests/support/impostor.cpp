#include "support/impostor.hpp"

#include <asio/buffer.hpp>
#include <asio/co_spawn.hpp>
#include <asio/completion_condition.hpp>
#include <asio/detached.hpp>
#include <asio/read.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include <array>
#include <utility>

namespace zkasio::test {

using asio::ip::tcp;

impostor::impostor(std::optional<std::string> answer, then next) : answer_(std::move(answer)), next_(next) {
    asio::co_spawn(io_, serve(), asio::detached);
    thread_ = std::thread([this] { io_.run(); });
}

impostor::~impostor() {
    io_.stop();
    thread_.join();
}

std::string impostor::address() const { return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()); }

asio::awaitable<void> impostor::serve() {
    for (;;) {
        tcp::socket s = co_await acceptor_.async_accept(asio::use_awaitable);
        asio::co_spawn(io_, talk(std::move(s)), asio::detached);
    }
}

asio::awaitable<void> impostor::talk(tcp::socket s) {
    constexpr std::size_t handshake = 49;  // the C client sends it in two parts
    std::array<char, 1024> request;
    std::size_t n =
        co_await asio::async_read(s, asio::buffer(request), asio::transfer_at_least(handshake), asio::use_awaitable);
    for (;;) {
        const std::string reply = answer_.value_or(std::string(request.data(), n));
        co_await asio::async_write(s, asio::buffer(reply), asio::use_awaitable);
        if (next_ != then::go_on) break;
        n = co_await s.async_read_some(asio::buffer(request), asio::use_awaitable);
    }
    if (next_ == then::reset) s.set_option(asio::socket_base::linger(true, 0));
    s.close();  // asio's destructor would not linger
}

}  // namespace zkasio::test
