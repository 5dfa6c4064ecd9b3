// What an installed zkasio's component prometheus is good for.
#include <zkasio/prometheus/prometheus_collector.hpp>

#include <asio/io_context.hpp>

int main() {
    asio::io_context io;
    zkasio::prometheus_collector metrics;
    metrics.add("consumer", zkasio::client(io, "127.0.0.1:1"));
    return metrics.Collect().empty() ? 1 : 0;
}
