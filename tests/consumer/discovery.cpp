// A program of somebody else's that looks for services: see CMakeLists.txt.
#include <zkasio/discovery/provider.hpp>
#include <zkasio/discovery/registry.hpp>

#include <asio/io_context.hpp>

int main() {
    asio::io_context io;
    const zkasio::client zk(io, zkasio::client_options("127.0.0.1:1"));
    const zkasio::provider orders(zk, "/services", "orders");
    const zkasio::service_instance is = zkasio::service_instance::from_json(R"({"name":"orders","id":"a","port":80})");
    return is.port() == 80 && !orders.try_pick() && zkasio::registry(zk, "/services").base() == "/services" ? 0 : 1;
}
