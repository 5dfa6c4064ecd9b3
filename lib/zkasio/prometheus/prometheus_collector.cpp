#include <zkasio/prometheus/prometheus_collector.hpp>

#include <zkasio/client_stats.hpp>

#include <chrono>
#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>

namespace zkasio {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

double seconds(std::chrono::nanoseconds d) { return std::chrono::duration<double>(d).count(); }

ClientMetric::Histogram histogram_of(const duration_histogram& from) {
    ClientMetric::Histogram h;
    h.sample_sum = seconds(from.sum);
    for (std::size_t i = 0; i < duration_histogram::size; ++i) {
        h.sample_count += from.counts[i];
        const bool last = i + 1 == duration_histogram::size;
        const double end = last ? std::numeric_limits<double>::infinity() : seconds(duration_histogram::upper_bound(i));
        h.bucket.push_back({h.sample_count, end});
    }
    return h;
}

// The metric families of all clients. Each family is listed once, with the metrics of all clients.
class families {
public:
    /// The metrics that follow are of this client.
    void begin(const std::string& client) { client_ = client; }

    void counter(const char* name, const char* help, std::uint64_t value, const char* label = nullptr,
                 std::string_view of = {}, const char* label2 = nullptr, std::string_view of2 = {}) {
        ClientMetric m = labelled(label, of, label2, of2);
        m.counter.value = static_cast<double>(value);
        add(name, help, MetricType::Counter, std::move(m));
    }
    void gauge(const char* name, const char* help, std::uint64_t value) {
        ClientMetric m = labelled(nullptr, {}, nullptr, {});
        m.gauge.value = static_cast<double>(value);
        add(name, help, MetricType::Gauge, std::move(m));
    }
    void histogram(const char* name, const char* help, const duration_histogram& value, const char* label = nullptr,
                   std::string_view of = {}) {
        ClientMetric m = labelled(label, of, nullptr, {});
        m.histogram = histogram_of(value);
        add(name, help, MetricType::Histogram, std::move(m));
    }

    std::vector<MetricFamily> take() {
        std::vector<MetricFamily> all;
        for (auto& [name, family] : by_name_) all.push_back(std::move(family));
        return all;
    }

private:
    ClientMetric labelled(const char* label, std::string_view of, const char* label2, std::string_view of2) const {
        ClientMetric m;
        m.label.push_back({"client", client_});
        if (label) m.label.push_back({label, std::string(of)});
        if (label2) m.label.push_back({label2, std::string(of2)});
        return m;
    }
    void add(const char* name, const char* help, MetricType type, ClientMetric m) {
        MetricFamily& family = by_name_[name];
        family.name = name;
        family.help = help;
        family.type = type;
        family.metric.push_back(std::move(m));
    }

    std::string client_;
    std::map<std::string, MetricFamily> by_name_;
};

void collect_requests(families& all, const client_stats& s) {
    constexpr const char* total = "zkasio_requests_total";
    constexpr const char* ended = "Requests that have ended.";
    for (const operation_stats& o : s.operations) {
        all.counter(total, ended, o.succeeded, "operation", o.operation, "outcome", "succeeded");
        all.counter(total, ended, o.failed, "operation", o.operation, "outcome", "failed");
        all.histogram("zkasio_request_queue_seconds", "From asking for a request to sending it.", o.in_queue,
                      "operation", o.operation);
        all.histogram("zkasio_request_wire_seconds", "From sending a request to its answer.", o.on_the_wire,
                      "operation", o.operation);
    }
    all.gauge("zkasio_requests_pending", "Requests that wait to be sent or answered.", s.pending);
    all.counter("zkasio_requests_repeated_total", "Requests that were sent again.", s.repeated);
    all.counter("zkasio_sent_bytes_total", "Bytes of requests.", s.bytes_sent);
    all.counter("zkasio_received_bytes_total", "Bytes of data, paths and names in answers.", s.bytes_received);
    all.gauge("zkasio_watches", "Watches that are set, those of caches not counted.", s.watches);
    all.counter("zkasio_watch_events_total", "Events of watches that have come.", s.watch_events);
    all.counter("zkasio_reports_dropped_total", "Reports that an observer was too slow for.", s.reports_dropped);
}

void collect_sessions(families& all, const client_stats& s, session_state now) {
    all.gauge("zkasio_connected", "Whether there is a connection.", now == session_state::connected);
    all.counter("zkasio_connections_total", "Connections that were made.", s.connections);
    all.counter("zkasio_connections_lost_total", "Connections that were lost.", s.connections_lost);
    all.counter("zkasio_sessions_total", "Sessions that were begun or resumed.", s.sessions);
    all.counter("zkasio_sessions_expired_total", "Sessions that have expired.", s.sessions_expired);
}

void collect_locks(families& all, const lock_stats& s) {
    constexpr const char* total = "zkasio_lock_waits_total";
    constexpr const char* ended = "Waits for locks that have ended.";
    all.counter(total, ended, s.granted, "outcome", "granted");
    all.counter(total, ended, s.refused, "outcome", "refused");
    all.counter(total, ended, s.failed, "outcome", "failed");
    all.histogram("zkasio_lock_wait_seconds", "From asking for a lock to the end of that wait.", s.waits);
    all.histogram("zkasio_lock_hold_seconds", "From getting a lock to giving it back.", s.holds);
    all.histogram("zkasio_lock_stop_seconds", "From stopping a body before the lease ends to its end.", s.stops);
    all.counter("zkasio_lock_overruns_total", "Stopped bodies that had not ended when the lock was lost.", s.overran);
    constexpr const char* handed = "zkasio_lock_handovers_total";
    constexpr const char* from = "Locks that were got from another owner.";
    all.counter(handed, from, s.handed_over_locally, "from", "local");
    all.counter(handed, from, s.handed_over_remotely, "from", "remote");
    all.gauge("zkasio_locks_held", "Locks that are held.", s.held);
    for (std::size_t i = 0; i < s.ended.size(); ++i) {
        const auto why = static_cast<loss_reason>(i);
        if (!is_loss(why)) continue;
        all.counter("zkasio_locks_lost_total", "Locks that were lost while they were held.", s.ended[i], "reason",
                    to_string(why));
    }
}

void collect_commits(families& all, const std::vector<commit_stats>& commits) {
    constexpr const char* total = "zkasio_commits_total";
    constexpr const char* ended = "Writes of queues, counters and transactions that have ended.";
    for (const commit_stats& c : commits) {
        const std::string_view kind = to_string(c.kind);
        all.counter(total, ended, c.succeeded, "kind", kind, "outcome", "succeeded");
        all.counter(total, ended, c.failed - c.unknown, "kind", kind, "outcome", "failed");
        all.counter(total, ended, c.unknown, "kind", kind, "outcome", "unknown");
        all.counter("zkasio_commit_parts_total", "Items, additions and ids of the writes that have succeeded.", c.parts,
                    "kind", kind);
        all.counter("zkasio_commit_conflicts_total", "Attempts that another client was ahead of.", c.conflicts, "kind",
                    kind);
        all.counter("zkasio_commit_promotions_total", "Writes that have waited for the mutex of promote_to().",
                    c.promoted, "kind", kind);
        all.histogram("zkasio_commit_seconds", "From asking for a write to its end.", c.times, "kind", kind);
    }
}

void collect_structures(families& all, const delivery_stats& items, const barrier_stats& barriers) {
    all.gauge("zkasio_deliveries_held", "Items of queues that are claimed.", items.held);
    for (std::size_t i = 0; i < items.ended.size(); ++i)
        all.counter("zkasio_deliveries_total", "Claims of items that have ended.", items.ended[i], "outcome",
                    to_string(static_cast<delivery_end>(i)));
    all.histogram("zkasio_item_wait_seconds", "From the put of an item to its first claim, by the servers' clocks.",
                  items.waits);
    all.histogram("zkasio_delivery_seconds", "From the claim of an item to the end of this claim.", items.holds);
    all.gauge("zkasio_barrier_members", "Members that are inside of double barriers.", barriers.inside);
    all.histogram("zkasio_barrier_wait_seconds", "From entering a double barrier, or leaving it, to the end of that.",
                  barriers.enters, "step", "enter");
    all.histogram("zkasio_barrier_wait_seconds", "From entering a double barrier, or leaving it, to the end of that.",
                  barriers.leaves, "step", "leave");
    all.counter("zkasio_barrier_failures_total", "Members that could not enter or leave.", barriers.failed);
    all.counter("zkasio_barrier_members_lost_total", "Members that were lost while they were inside.", barriers.lost);
}

}  // namespace

void prometheus_collector::add(std::string name, client zk) {
    static_cast<void>(zk.stats());  // throws for a moved-from client
    const std::lock_guard lock(mutex_);
    const auto [there, added] = clients_.try_emplace(std::move(name), zk);
    if (!added) std::swap(there->second, zk);  // the replaced client is destroyed without the lock
}

void prometheus_collector::remove(const std::string& name) {
    std::map<std::string, client>::node_type gone;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    gone = clients_.extract(name);
}

std::vector<MetricFamily> prometheus_collector::Collect() const {
    families all;
    const std::lock_guard lock(mutex_);
    for (const auto& [name, zk] : clients_) {
        const client_stats s = zk.stats();
        all.begin(name);
        collect_requests(all, s);
        collect_sessions(all, s, zk.state());
        collect_locks(all, s.locks);
        collect_commits(all, s.commits);
        collect_structures(all, s.deliveries, s.barriers);
    }
    return all.take();
}

}  // namespace zkasio
