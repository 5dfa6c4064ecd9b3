// What a scrape, and what spans show of locks that are taken meanwhile.

#include "../examples/span_observer.hpp"
#include "support/catch.hpp"
#include "support/test_client.hpp"

#include <zkasio/locks/mutex.hpp>
#include <zkasio/prometheus/prometheus_collector.hpp>
#include <zkasio/testing/fake_ensemble.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

using namespace spans;
using namespace zkasio;
using namespace zkasio::test;
using testing::fake_ensemble;

namespace {

client_options scraped_client() { return client_options("zk1").session_timeout(10s); }

// The numbers of one scrape, "a granted" for a metric of client a with that label; of a histogram: how many.
class scrape {
public:
    explicit scrape(const prometheus_collector& from) : families_(from.Collect()) {}

    double of(std::string_view family, std::string_view client, std::string_view label = {}) const {
        for (const prometheus::MetricFamily& f : families_)
            if (f.name == family)
                for (const prometheus::ClientMetric& m : f.metric)
                    if (m.label.front().value == client && (label.empty() || m.label.back().value == label))
                        return f.type == prometheus::MetricType::Gauge     ? m.gauge.value
                            : f.type == prometheus::MetricType::Histogram ? double(m.histogram.sample_count)
                                                                          : m.counter.value;
        FAIL("no " << family << " of " << client << " " << label);
        return 0;
    }

private:
    std::vector<prometheus::MetricFamily> families_;
};

// Takes the lock again and again; every third time it does not wait.
asio::awaitable<void> take(mutex lock, int times, int* granted, int* refused) {
    for (int i = 0; i < times; ++i) {
        if (i % 3 != 2) {
            const lock_guard guard = co_await lock.acquire();
            ++*granted;
        } else {
            const std::optional<lock_guard> guard = co_await lock.try_acquire();
            ++*(guard ? granted : refused);
        }
    }
}

std::int64_t number_in(const span& s, std::string_view key) {
    for (const auto& [name, value] : s.attributes)
        if (name == key) return std::get<std::int64_t>(value);
    return 0;
}

std::string text_in(const span& s, std::string_view key) {
    for (const auto& [name, value] : s.attributes)
        if (name == key) return std::get<std::string>(value);
    return {};
}

class lock_spans final : public span_observer {
public:
    void finished(span s) override {
        if (s.name == "lock wait") waits.push_back(std::move(s));
        if (s.name == "lock hold") holds.push_back(std::move(s));
    }
    std::vector<span> waits, holds;
};

}  // namespace

TEST_CASE("prometheus_collector: scrapes at every step of lock traffic agree with themselves and with what was done") {
    fake_ensemble ensemble;
    prometheus_collector metrics;
    const client a = ensemble.client(scraped_client()), b = ensemble.client(scraped_client());
    metrics.add("a", a);
    metrics.add("b", b);
    int scrapes = 0, wrong = 0, both = 0;
    std::map<std::string, double> before;
    ensemble.on_step([&](std::string_view) {
        const scrape now(metrics);
        ++scrapes;
        double held_by_all = 0;
        for (const char* who : {"a", "b"}) {
            const double granted = now.of("zkasio_lock_waits_total", who, "granted"),
                         refused = now.of("zkasio_lock_waits_total", who, "refused"),
                         failed = now.of("zkasio_lock_waits_total", who, "failed"),
                         held = now.of("zkasio_locks_held", who),
                         ended = now.of("zkasio_lock_hold_seconds", who),
                         handed = now.of("zkasio_lock_handovers_total", who, "local") +
                now.of("zkasio_lock_handovers_total", who, "remote");
            const bool agrees = now.of("zkasio_lock_wait_seconds", who) == granted + refused + failed &&
                held == granted - ended && handed <= granted && granted >= before[who];
            wrong += agrees ? 0 : 1;
            before[who] = granted;
            held_by_all += held;
        }
        both += held_by_all > 1 ? 1 : 0;
    });
    int granted_a = 0, refused_a = 0, granted_b = 0, refused_b = 0;
    const auto executor = ensemble.get_executor();
    std::vector<running> takers;
    for (int i = 0; i < 3; ++i) {
        takers.emplace_back(executor, take(mutex(a, "/lock"), 12, &granted_a, &refused_a));
        takers.emplace_back(executor, take(mutex(b, "/lock"), 12, &granted_b, &refused_b));
    }
    for (const running& r : takers) CHECK_FALSE(ensemble.run(r.code()));
    ensemble.run(a.idle());
    ensemble.run(b.idle());
    ensemble.on_step(nullptr);
    CHECK(scrapes > 100);
    CHECK(wrong == 0);
    CHECK(both == 0);
    CHECK(refused_a + refused_b > 0);
    const scrape last(metrics);
    CHECK(last.of("zkasio_lock_waits_total", "a", "granted") == granted_a);
    CHECK(last.of("zkasio_lock_waits_total", "b", "granted") == granted_b);
    CHECK(last.of("zkasio_lock_waits_total", "a", "refused") == refused_a);
    CHECK(last.of("zkasio_lock_waits_total", "b", "refused") == refused_b);
    CHECK(last.of("zkasio_lock_hold_seconds", "a") == granted_a);
    CHECK(last.of("zkasio_locks_held", "a") == 0);
    CHECK(last.of("zkasio_locks_held", "b") == 0);
    CHECK(last.of("zkasio_lock_handovers_total", "a", "local") > 0);
    CHECK(last.of("zkasio_lock_handovers_total", "b", "remote") > 0);
}

TEST_CASE("prometheus_collector: a lock that is lost is counted under its reason, and held no more") {
    fake_ensemble ensemble;
    prometheus_collector metrics;
    const client zk = ensemble.client(scraped_client());
    metrics.add("a", zk);
    auto body = [&]() -> asio::awaitable<void> {
        {
            const lock_guard guard = co_await mutex(zk, "/lock").acquire();
            CHECK(scrape(metrics).of("zkasio_locks_held", "a") == 1);
            ensemble.remove(guard.path());
            co_await guard.lost();
        }
        co_await zk.idle();
        const scrape now(metrics);
        CHECK(now.of("zkasio_locks_held", "a") == 0);
        CHECK(now.of("zkasio_locks_lost_total", "a", to_string(loss_reason::node_deleted)) == 1);
        CHECK(now.of("zkasio_lock_hold_seconds", "a") == 1);
        CHECK(now.of("zkasio_locks_lost_total", "a", to_string(loss_reason::session_expired)) == 0);
    };
    ensemble.run(body);
}

TEST_CASE("span_observer: spans of lock traffic follow each other as the locks do") {
    fake_ensemble ensemble;
    const auto seen = std::make_shared<lock_spans>();
    const client zk = ensemble.client(scraped_client().observer(seen));
    int granted = 0, refused = 0;
    std::vector<running> takers;
    for (int i = 0; i < 4; ++i)
        takers.emplace_back(ensemble.get_executor(), take(mutex(zk, "/lock"), 6, &granted, &refused));
    for (const running& r : takers) CHECK_FALSE(ensemble.run(r.code()));
    auto lost = [&]() -> asio::awaitable<void> {
        const lock_guard guard = co_await mutex(zk, "/lock").acquire();
        ensemble.remove(guard.path());
        co_await guard.lost();
    };
    ensemble.run(lost);
    ensemble.run(zk.idle());
    ensemble.run_for(1s);  // until all is told

    REQUIRE(seen->waits.size() == static_cast<std::size_t>(granted + refused) + 1);
    REQUIRE(seen->holds.size() == static_cast<std::size_t>(granted) + 1);
    std::vector<span> got;
    for (const span& s : seen->waits)
        if (number_in(s, "zkasio.lock.token") != 0) got.push_back(s);
    REQUIRE(got.size() == seen->holds.size());
    int local = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const span& wait = got[i];
        const span& hold = seen->holds[i];
        CHECK(number_in(wait, "zkasio.lock.token") == number_in(hold, "zkasio.lock.token"));
        CHECK(hold.start - wait.end < 1us);  // the system's clock has its own idea of their beginning
        CHECK(wait.end - hold.start < 1us);
        if (i > 0) CHECK(number_in(hold, "zkasio.lock.token") > number_in(seen->holds[i - 1], "zkasio.lock.token"));
        if (i > 0) CHECK(hold.start >= seen->holds[i - 1].end);
        local += text_in(wait, "zkasio.lock.handed_over") == to_string(hand_over::local) ? 1 : 0;
        CHECK_FALSE(wait.failed);
        CHECK(hold.failed == (i + 1 == got.size()));
    }
    CHECK(local > 0);
    CHECK(text_in(seen->holds.back(), "error.type") == to_string(loss_reason::node_deleted));
}
