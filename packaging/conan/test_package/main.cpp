#include <zkasio/client.hpp>

#include <asio/io_context.hpp>

int main() {
    asio::io_context io;
    try {
        const zkasio::client zk(io, zkasio::client_options("no server list:x"));
    } catch (const zkasio::error&) {
        return 0;
    }
    return 1;
}
