#pragma once

#include <zkasio/client.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace order_server {

/// What /metrics tells: the payments by outcome, and what the ZooKeeper client does. From any thread. There are two
/// sources for it: CMake takes metrics_none.cpp where there is no prometheus-cpp.
class metrics {
public:
    explicit metrics(zkasio::client zk);
    ~metrics();

    void count_payment(std::string_view outcome);
    /// In Prometheus' text format; empty where there are no metrics.
    std::string text() const;

private:
    struct parts;
    std::unique_ptr<parts> parts_;
};

}  // namespace order_server
