// What a prometheus_collector shows of queues; what is sampled for it.

#include "support/catch.hpp"
#include "support/source_dir.hpp"
#include "support/test_client.hpp"
#include "testing/steps.hpp"

#include <zkasio/counters/atomic_counter.hpp>
#include <zkasio/locks/mutex.hpp>
#include <zkasio/prometheus/prometheus_collector.hpp>
#include <zkasio/queues/work_queue.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <asio/post.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace prometheus_structures_tests {

using namespace zkasio;
using namespace zkasio::test;
using zkasio::testing::fake_ensemble;

namespace {

double sum_of(const prometheus_collector& from, std::string_view family, std::string_view label = {}) {
    double sum = 0;
    for (const prometheus::MetricFamily& f : from.Collect())
        if (f.name == family)
            for (const prometheus::ClientMetric& m : f.metric)
                if (label.empty() || m.label.back().value == label)
                    sum += f.type == prometheus::MetricType::Gauge ? m.gauge.value : m.counter.value;
    return sum;
}

}  // namespace

TEST_CASE("prometheus_collector: scrapes at every step of a queue over cuts and expiries agree with themselves") {
    fake_ensemble ensemble;
    prometheus_collector metrics;
    const client a = ensemble.client(calm()), b = ensemble.client(calm());
    metrics.add("a", a);
    metrics.add("b", b);
    int scrapes = 0, wrong = 0, steps = 0, done = 0;
    const auto agrees = [&] {
        return sum_of(metrics, "zkasio_deliveries_held") + sum_of(metrics, "zkasio_deliveries_total") ==
            sum_of(metrics, "zkasio_commit_parts_total", "claim");
    };
    ensemble.on_step([&](std::string_view) {
        ++steps;
        if (steps % 37 == 0) asio::post(ensemble.context(), [&, which = steps % 2] { ensemble.cut(which ? a : b); });
        if (steps == 150) asio::post(ensemble.context(), [&] { ensemble.expire(b); });
        ++scrapes;
        if (!agrees()) ++wrong;
    });
    constexpr int items = 60;
    auto produce = [&]() -> asio::awaitable<void> {
        const work_queue q(a, "/q");
        for (int i = 0; i < items; ++i) co_await q.put(std::to_string(i));
    };
    auto consume = [&](client zk) -> asio::awaitable<void> {
        const work_queue q(zk, "/q");
        for (int i = 0; done < items; ++i) {
            delivery d = co_await q.receive();
            if (i % 3 == 0) continue;
            const std::error_code failed = co_await code_of([](const delivery& of) -> asio::awaitable<int> {
                co_await of.done();
                co_return 0;
            }(d));
            if (!failed) ++done;
        }
    };
    std::vector<running> all;
    all.emplace_back(ensemble.get_executor(), produce());
    for (int i = 0; i < 3; ++i) {
        all.emplace_back(ensemble.get_executor(), consume(a));
        all.emplace_back(ensemble.get_executor(), consume(b));
    }
    ensemble.run(all.front().code());
    ensemble.run([&]() -> asio::awaitable<void> {
        while (done < items) co_await sleep_for(1s);
    });
    ensemble.on_step(nullptr);
    for (running& r : all) r.cancel();
    for (const running& r : all) ensemble.run(r.code());
    ensemble.run(a.idle());
    ensemble.run(b.idle());
    CHECK(scrapes > 200);
    CHECK(wrong == 0);
    CHECK(agrees());
    CHECK(sum_of(metrics, "zkasio_deliveries_held") == 0);
    CHECK(sum_of(metrics, "zkasio_commit_parts_total", "put") == items);
    CHECK(sum_of(metrics, "zkasio_deliveries_total", "done") >= items);
}

namespace {

std::set<std::string> matches_of(const std::string& text, const char* pattern) {
    const std::regex each(pattern);
    std::set<std::string> all;
    for (std::sregex_iterator it(text.begin(), text.end(), each), end; it != end; ++it) all.insert((*it)[1]);
    return all;
}

}  // namespace

TEST_CASE("prometheus_collector: the sample alerts and the dashboard ask for nothing that a run does not export") {
    fake_ensemble ensemble;
    prometheus_collector metrics;
    const client zk = ensemble.client(calm());
    metrics.add("a", zk);
    auto all = [&]() -> asio::awaitable<void> {
        const mutex lock(zk, "/lock");
        const lock_guard guard = co_await lock.acquire();
        const work_queue q(zk, "/q");
        co_await q.put("item");
        const delivery d = co_await q.receive();
        co_await d.done();
        const atomic_counter n(zk, "/n");
        co_await n.add(1);
    };
    ensemble.run(all());
    const std::vector<prometheus::MetricFamily> exported = metrics.Collect();
    std::set<std::string> names, values;
    for (const prometheus::MetricFamily& f : exported) {
        names.insert(f.name);
        if (f.type == prometheus::MetricType::Histogram) names.insert(f.name + "_bucket");
        for (const prometheus::ClientMetric& m : f.metric)
            for (const auto& l : m.label) values.insert(l.name + "=" + l.value);
    }
    for (const char* file : {"alerts.yml", "dashboard.json"}) {
        std::ifstream in(source_dir() + "/docs/monitoring/" + file);
        std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
        const auto asked = matches_of(text, "(zkasio_[a-z_]+)[{\\[ ]");
        CHECK(asked.size() >= 12);
        for (const std::string& name : asked) {
            CAPTURE(file, name);
            CHECK(names.count(name) == 1);
        }
        for (const std::string label : {"outcome", "kind", "reason", "operation", "step", "from"})
            for (const std::string& value : matches_of(text, (label + "!?=\"([^\"$]+)\"").c_str())) {
                CAPTURE(file, label, value);
                CHECK(values.count(label + "=" + value) == 1);
            }
        for (const std::string& labels : matches_of(text, "by \\(([a-z, ]+)\\)"))
            for (const std::string& label : matches_of(labels, "([a-z]+)")) {
                const bool is_of_prometheus = label == "instance" || label == "le";
                const auto has = [&](const std::string& value) { return value.starts_with(label + "="); };
                CAPTURE(file, label);
                CHECK((is_of_prometheus || std::any_of(values.begin(), values.end(), has)));
            }
    }
}

}  // namespace prometheus_structures_tests
