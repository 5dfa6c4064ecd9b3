// What an installed zkasio's component sasl is good for.
#include <zkasio/client.hpp>
#include <zkasio/sasl/digest_md5.hpp>

#include <asio/io_context.hpp>

int main() {
    asio::io_context io;
    const zkasio::client_options o = zkasio::client_options("localhost:1").sasl(zkasio::digest_md5("alice", "wonder"));
    const zkasio::client zk(io, o);
    return zk.options().sasl() ? 0 : 1;
}
