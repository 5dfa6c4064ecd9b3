#include "unit/support/error_of.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/prometheus/prometheus_collector.hpp>

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

using family_map = std::map<std::string, prometheus::MetricFamily>;

family_map collect(const prometheus_collector& from) {
    family_map all;
    for (prometheus::MetricFamily& f : from.Collect()) {
        CHECK(all.count(f.name) == 0);  // each family once
        std::string name = f.name;
        all.emplace(std::move(name), std::move(f));
    }
    return all;
}

// Of the metric with these labels, in their order: "orders get failed".
prometheus::ClientMetric metric_of(const family_map& all, const std::string& family, const std::string& labels) {
    const auto f = all.find(family);
    REQUIRE(f != all.end());
    for (const prometheus::ClientMetric& m : f->second.metric) {
        std::string its;
        for (const auto& l : m.label) its += (its.empty() ? "" : " ") + l.value;
        if (its == labels) return m;
    }
    FAIL("no metric " << family << " of " << labels);
    return {};
}

}  // namespace

TEST_CASE("prometheus_collector: each scrape shows what the clients have done") {
    prometheus_collector metrics;
    CHECK(metrics.Collect().empty());
    rig r;
    r.server.answer = [](const request& what) {
        return path_of(what) == "/missing" ? refusal(zk_errc::no_node) : reply{};
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        metrics.add("orders", zk);
        co_await zk.get("/a");
        co_await zk.get("/a");
        try {
            co_await zk.get("/missing");
        } catch (const error&) {
        }
        const family_map all = collect(metrics);
        CHECK(metric_of(all, "zkasio_requests_total", "orders get succeeded").counter.value == 2);
        CHECK(metric_of(all, "zkasio_requests_total", "orders get failed").counter.value == 1);
        CHECK(metric_of(all, "zkasio_connected", "orders").gauge.value == 1);
        CHECK(metric_of(all, "zkasio_sessions_total", "orders").counter.value == 1);
        CHECK(metric_of(all, "zkasio_lock_waits_total", "orders granted").counter.value == 0);
        CHECK(metric_of(all, "zkasio_locks_lost_total", "orders session expired").counter.value == 0);

        const auto wire = metric_of(all, "zkasio_request_wire_seconds", "orders get").histogram;
        CHECK(wire.sample_count == 3);
        CHECK(wire.sample_sum > 0);
        CHECK(wire.sample_sum < 60);
        CHECK(std::abs(wire.bucket.front().upper_bound - 1e-6) < 1e-12);
        CHECK(std::isinf(wire.bucket.back().upper_bound));
        CHECK(wire.bucket.back().cumulative_count == 3);
        const auto less = [](const auto& a, const auto& b) {
            return a.upper_bound < b.upper_bound && a.cumulative_count <= b.cumulative_count;
        };
        CHECK(std::is_sorted(wire.bucket.begin(), wire.bucket.end(), less));

        metrics.add("other", zk);
        CHECK(collect(metrics).at("zkasio_connected").metric.size() == 2);
        metrics.remove("other");
        metrics.remove("nobody");
        CHECK(collect(metrics).at("zkasio_connected").metric.size() == 1);
    };
    r.run(body);
    CHECK(metric_of(collect(metrics), "zkasio_connected", "orders").gauge.value == 0);
    metrics.remove("orders");
}

TEST_CASE("prometheus_collector: locks and bytes are shown as what they are") {
    prometheus_collector metrics;
    rig r;
    r.server.answer = [](const request&) {
        reply a;
        a.data = std::string(5000, 'x');
        return a;
    };
    auto body = [&](client zk) -> asio::awaitable<void> {
        metrics.add("orders", zk);
        co_await zk.get("/a");
        auto& told = r.core->telemetry();
        lock_wait_report wait;
        wait.ended = wait.asked + std::chrono::seconds(1);
        for (const hand_over from : {hand_over::local, hand_over::remote, hand_over::remote, hand_over::none}) {
            wait.from = from;
            told.ended(wait);
        }
        lock_hold_report hold;
        hold.ended = hold.granted + std::chrono::seconds(7);
        for (const loss_reason lost : {loss_reason::none, loss_reason::session_expired}) {
            hold.lost = lost;
            told.ended(hold);
        }
        co_return;
    };
    r.run(body);
    const family_map all = collect(metrics);
    CHECK(metric_of(all, "zkasio_lock_waits_total", "orders granted").counter.value == 4);
    CHECK(metric_of(all, "zkasio_locks_held", "orders").gauge.value == 2);
    CHECK(metric_of(all, "zkasio_lock_handovers_total", "orders local").counter.value == 1);
    CHECK(metric_of(all, "zkasio_lock_handovers_total", "orders remote").counter.value == 2);
    const auto waits = metric_of(all, "zkasio_lock_wait_seconds", "orders").histogram;
    CHECK(waits.sample_count == 4);
    CHECK(std::abs(waits.sample_sum - 4) < 1e-6);
    const auto holds = metric_of(all, "zkasio_lock_hold_seconds", "orders").histogram;
    CHECK(holds.sample_count == 2);
    CHECK(std::abs(holds.sample_sum - 14) < 1e-6);
    // A lock that was given back was not lost.
    std::vector<std::string> lost;
    for (const prometheus::ClientMetric& m : all.at("zkasio_locks_lost_total").metric)
        if (m.counter.value > 0) lost.push_back(m.label.back().value);
    CHECK(lost == std::vector<std::string>{"session expired"});
    CHECK(metric_of(all, "zkasio_received_bytes_total", "orders").counter.value >= 5000);
    CHECK(metric_of(all, "zkasio_sent_bytes_total", "orders").counter.value < 5000);
    metrics.remove("orders");
}

TEST_CASE("prometheus_collector: queues, counters, transactions and barriers") {
    prometheus_collector metrics;
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        metrics.add("orders", zk);
        auto& told = r.core->telemetry();
        commit_report claim;
        claim.kind = commit_kind::claim;
        claim.parts = 5;
        claim.ended = claim.asked + std::chrono::seconds(2);
        told.ended(claim);
        claim.conflicts = 1;
        claim.code = zk_errc::bad_version;
        told.ended(claim);
        commit_report added;
        added.kind = commit_kind::add;
        added.promoted = true;
        added.code = errc::session_expired;
        added.outcome_unknown = true;
        told.ended(added);
        delivery_report item;
        item.attempt = 1;
        item.waited = std::chrono::seconds(30);
        item.ended = item.claimed + std::chrono::seconds(3);
        for (const delivery_end how : {delivery_end::done, delivery_end::rejected, delivery_end::rejected}) {
            item.how = how;
            told.ended(item);
        }
        barrier_report member;
        told.ended(member);
        told.ended(member);
        member.step = barrier_step::leave;
        member.lost = loss_reason::lease_ended;
        member.ended = member.asked + std::chrono::seconds(4);
        told.ended(member);
        co_return;
    };
    r.run(body);
    const family_map all = collect(metrics);
    const auto counted = [&](const char* family, const char* labels) {
        return metric_of(all, family, labels).counter.value;
    };
    CHECK(counted("zkasio_commits_total", "orders claim succeeded") == 1);
    CHECK(counted("zkasio_commits_total", "orders claim failed") == 1);
    CHECK(counted("zkasio_commits_total", "orders claim unknown") == 0);
    CHECK(counted("zkasio_commits_total", "orders add failed") == 0);
    CHECK(counted("zkasio_commits_total", "orders add unknown") == 1);
    CHECK(counted("zkasio_commit_parts_total", "orders claim") == 5);
    CHECK(counted("zkasio_commit_parts_total", "orders add") == 0);
    CHECK(counted("zkasio_commit_conflicts_total", "orders claim") == 1);
    CHECK(counted("zkasio_commit_promotions_total", "orders claim") == 0);
    CHECK(counted("zkasio_commit_promotions_total", "orders add") == 1);
    CHECK(metric_of(all, "zkasio_commit_seconds", "orders claim").histogram.sample_count == 2);
    CHECK(all.at("zkasio_commits_total").metric.size() == 6);  // of the kinds that have occurred
    CHECK(metric_of(all, "zkasio_deliveries_held", "orders").gauge.value == 2);
    CHECK(counted("zkasio_deliveries_total", "orders done") == 1);
    CHECK(counted("zkasio_deliveries_total", "orders rejected") == 2);
    CHECK(counted("zkasio_deliveries_total", "orders lost") == 0);
    CHECK(std::abs(metric_of(all, "zkasio_item_wait_seconds", "orders").histogram.sample_sum - 90) < 1e-6);
    CHECK(std::abs(metric_of(all, "zkasio_delivery_seconds", "orders").histogram.sample_sum - 9) < 1e-6);
    CHECK(metric_of(all, "zkasio_barrier_members", "orders").gauge.value == 1);
    CHECK(metric_of(all, "zkasio_barrier_wait_seconds", "orders enter").histogram.sample_count == 2);
    CHECK(std::abs(metric_of(all, "zkasio_barrier_wait_seconds", "orders leave").histogram.sample_sum - 4) < 1e-6);
    CHECK(counted("zkasio_barrier_failures_total", "orders") == 0);
    CHECK(counted("zkasio_barrier_members_lost_total", "orders") == 1);
    metrics.remove("orders");
}

TEST_CASE("prometheus_collector: a client that was moved from is refused, and does not spoil every scrape") {
    prometheus_collector metrics;
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        client here = zk;
        const client there = std::move(here);
        CHECK(code_thrown_by([&] { metrics.add("orders", here); }) == errc::invalid_argument);
        CHECK(metrics.Collect().empty());
        co_return;
    };
    r.run(body);
}

TEST_CASE("prometheus_collector: the names and units are Prometheus' own, and the text is one that it reads") {
    prometheus_collector metrics;
    rig r;
    auto body = [&](client zk) -> asio::awaitable<void> {
        metrics.add("a \"name\"\n", zk);
        co_await zk.get("/a");
        for (const prometheus::MetricFamily& f : metrics.Collect()) {
            INFO(f.name);
            const bool counts = f.type == prometheus::MetricType::Counter;
            CHECK(f.name.starts_with("zkasio_"));
            CHECK(f.name.ends_with("_total") == counts);
            if (f.type == prometheus::MetricType::Histogram) CHECK(f.name.ends_with("_seconds"));
            CHECK_FALSE(f.help.empty());
        }
        std::ostringstream text;
        prometheus::TextSerializer().Serialize(text, metrics.Collect());
        CHECK(text.str().find("zkasio_requests_total{client=\"a \\\"name\\\"\\n\",operation=\"get\"") !=
              std::string::npos);
        metrics.remove("a \"name\"\n");
    };
    r.run(body);
}
