#include "four_letters.hpp"

#include <zkasio/coroutines/timeout.hpp>

#include <asio/buffer.hpp>
#include <asio/connect.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/redirect_error.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include <system_error>
#include <utility>

namespace zklock {
namespace {

server_name split_server(std::string_view text) {
    const auto bracket = text.rfind(']'), colon = text.rfind(':');
    const bool has_port = colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
    std::string host(text.substr(0, has_port ? colon : text.size()));
    if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    return {std::move(host), has_port ? std::string(text.substr(colon + 1)) : "2181"};
}

asio::awaitable<std::string> ask_now(server_name server, std::string four_letters) {
    const asio::any_io_executor executor = co_await asio::this_coro::executor;
    asio::ip::tcp::resolver resolver(executor);
    const auto found = co_await resolver.async_resolve(server.host, server.port, asio::use_awaitable);
    asio::ip::tcp::socket socket(executor);
    co_await asio::async_connect(socket, found, asio::use_awaitable);
    co_await asio::async_write(socket, asio::buffer(four_letters), asio::use_awaitable);
    std::string answer;
    std::error_code end;
    co_await asio::async_read(socket, asio::dynamic_buffer(answer, 65536),
                              asio::redirect_error(asio::use_awaitable, end));
    co_return answer;  // the server closes
}

}  // namespace

std::vector<server_name> split_servers(std::string_view connect_string) {
    connect_string = connect_string.substr(0, connect_string.find('/'));
    std::vector<server_name> servers;
    for (;;) {
        const auto comma = connect_string.find(',');
        if (const auto one = connect_string.substr(0, comma); !one.empty()) servers.push_back(split_server(one));
        if (comma == std::string_view::npos) return servers;
        connect_string.remove_prefix(comma + 1);
    }
}

asio::awaitable<std::string> ask_server(server_name server, std::string four_letters,
                                        std::chrono::milliseconds limit) {
    co_return co_await zkasio::timeout(limit, ask_now(std::move(server), std::move(four_letters)));
}

std::string value_of(std::string_view answer, std::string_view key) {
    const auto at = answer.find(key);
    if (at == std::string_view::npos) return {};
    answer.remove_prefix(at + key.size());
    answer = answer.substr(0, answer.find('\n'));
    while (!answer.empty() && answer.front() == ' ') answer.remove_prefix(1);
    return std::string(answer);
}

}  // namespace zklock
