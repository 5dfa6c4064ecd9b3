#include "metrics.hpp"

#include <zkasio/prometheus/prometheus_collector.hpp>

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <iterator>
#include <utility>
#include <vector>

namespace order_server {

// [metrics]
struct metrics::parts {
    prometheus::Registry own;
    prometheus::Family<prometheus::Counter>& payments = prometheus::BuildCounter()
                                                            .Name("order_server_payments_total")
                                                            .Help("Requests to pay an order, by how they have ended")
                                                            .Register(own);
    zkasio::prometheus_collector zookeeper;
};

metrics::metrics(zkasio::client zk) : parts_(std::make_unique<parts>()) {
    parts_->zookeeper.add("orders", std::move(zk));
}

metrics::~metrics() = default;

void metrics::count_payment(std::string_view outcome) {
    parts_->payments.Add({{"outcome", std::string(outcome)}}).Increment();
}

std::string metrics::text() const {
    std::vector<prometheus::MetricFamily> all = parts_->own.Collect();
    std::vector<prometheus::MetricFamily> zookeeper = parts_->zookeeper.Collect();
    all.insert(all.end(), std::make_move_iterator(zookeeper.begin()), std::make_move_iterator(zookeeper.end()));
    return prometheus::TextSerializer().Serialize(all);
}
// [/metrics]

}  // namespace order_server
