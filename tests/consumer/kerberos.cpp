// What an installed zkasio's component kerberos is good for.
#include <zkasio/client.hpp>
#include <zkasio/kerberos/kerberos.hpp>

#include <asio/io_context.hpp>
#include <asio/system_executor.hpp>

int main() {
    asio::io_context io;
    const zkasio::client_options o =
        zkasio::client_options("localhost:1").sasl(zkasio::kerberos(asio::system_executor()));
    const zkasio::client zk(io, o);
    return zk.options().sasl() ? 0 : 1;
}
