// What an installed zkasio's component tls is good for.
#include <zkasio/client.hpp>
#include <zkasio/tls/tls_options.hpp>

#include <asio/io_context.hpp>

int main() {
    asio::io_context io;
    const zkasio::client_options o = zkasio::client_options("localhost:1").tls(zkasio::tls_files());
    const zkasio::client zk(io, o);
    return zk.options().security() ? 0 : 1;
}
