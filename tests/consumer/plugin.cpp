#include <zkasio/client.hpp>

#include <asio/io_context.hpp>

// A shared object that has a static zkasio in it. Returns 0 when the client refuses what is no server list.
extern "C" int check_plugin() {
    asio::io_context io;
    try {
        const zkasio::client zk(io.get_executor(), zkasio::client_options("no server list:x"));
    } catch (const zkasio::error&) {
        return 0;
    }
    return 1;
}
