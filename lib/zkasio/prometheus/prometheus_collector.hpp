#pragma once

#include <zkasio/client.hpp>
#include <zkasio/export.hpp>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

/// Needs the CMake target zkasio::prometheus (the component `prometheus` of the installed package), which adds
/// prometheus-cpp's core library.
namespace zkasio {

/// Metrics of clients for Prometheus. Each scrape reads client::stats(): between scrapes the collector costs nothing.
///
///     const auto metrics = std::make_shared<prometheus_collector>();
///     metrics->add("orders", zk);
///     exposer.RegisterCollectable(metrics);  // prometheus::Exposer keeps a weak reference
///
/// Every metric has the label `client`, with the name that was given to add():
/// - zkasio_requests_total {operation, outcome = succeeded | failed}; zkasio_request_queue_seconds and
///   zkasio_request_wire_seconds {operation}, histograms
/// - zkasio_requests_pending, zkasio_requests_repeated_total, zkasio_sent_bytes_total, zkasio_received_bytes_total
/// - zkasio_connected (1 or 0), zkasio_connections_total, zkasio_connections_lost_total, zkasio_sessions_total,
///   zkasio_sessions_expired_total
/// - zkasio_watches, zkasio_watch_events_total
/// - zkasio_lock_waits_total {outcome = granted | refused | failed}, zkasio_lock_wait_seconds and
///   zkasio_lock_hold_seconds, histograms; zkasio_lock_handovers_total {from = local | remote}, zkasio_locks_held,
///   zkasio_locks_lost_total {reason}; zkasio_lock_stop_seconds, a histogram, and zkasio_lock_overruns_total: of bodies
///   with a stop margin
/// - zkasio_commits_total {kind, outcome = succeeded | failed | unknown}, zkasio_commit_parts_total,
///   zkasio_commit_conflicts_total and zkasio_commit_promotions_total {kind}, zkasio_commit_seconds {kind}, a
///   histogram; the kinds are those of commit_kind
/// - zkasio_deliveries_total {outcome = done | given_back | rejected | lost}, zkasio_deliveries_held,
///   zkasio_item_wait_seconds and zkasio_delivery_seconds, histograms
/// - zkasio_barrier_members, zkasio_barrier_wait_seconds {step = enter | leave}, a histogram,
///   zkasio_barrier_failures_total, zkasio_barrier_members_lost_total
/// - zkasio_reports_dropped_total, of a client_observer that is too slow
class ZKASIO_EXPORT prometheus_collector final : public prometheus::Collectable {
public:
    /// May be called on any thread. Keeps the client open until remove(). If the name is already used, the new client
    /// replaces the old one. Throws errc::invalid_argument for a client that was moved from.
    void add(std::string name, client zk);
    void remove(const std::string& name);

    std::vector<prometheus::MetricFamily> Collect() const override;

private:
    mutable std::mutex mutex_;
    std::map<std::string, client> clients_;
};

}  // namespace zkasio
