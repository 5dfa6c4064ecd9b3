// What is counted of queues, counters, transactions that run again, and barriers; and how much of it an observer may
// leave waiting.

#include "support/recording_observer.hpp"
#include "unit/support/rig.hpp"

#include <zkasio/detail/telemetry/statistics.hpp>
#include <zkasio/recipe/reports.hpp>

#include <asio/error.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;
using namespace std::chrono_literals;

namespace {

commit_report commit_of(commit_kind kind, std::size_t parts, std::size_t conflicts = 0, std::error_code code = {}) {
    commit_report r;
    r.kind = kind;
    r.parts = parts;
    r.conflicts = conflicts;
    r.code = code;
    r.ended = r.asked + 3ms;
    return r;
}

delivery_report delivery_of(delivery_end how, int attempt = 1) {
    delivery_report r;
    r.how = how;
    r.attempt = attempt;
    r.ended = r.claimed + 40ms;
    r.waited = 2s;
    return r;
}

barrier_report step_of(barrier_step step, std::error_code code = {}) {
    barrier_report r;
    r.step = step;
    r.code = code;
    r.ended = r.asked + 7ms;
    return r;
}

}  // namespace

TEST_CASE("statistics: commits are counted by kind, with their parts if they have succeeded") {
    statistics s;
    CHECK(s.get().commits.empty());
    s.ended(commit_of(commit_kind::add, 20));
    s.ended(commit_of(commit_kind::add, 5, 3));
    commit_report promoted = commit_of(commit_kind::add, 7, 1, zk_errc::no_auth);
    promoted.promoted = true;
    s.ended(promoted);
    commit_report unknown = commit_of(commit_kind::transact, 1, 0, errc::session_expired);
    unknown.outcome_unknown = true;
    s.ended(unknown);
    const client_stats seen = s.get();
    REQUIRE(seen.commits.size() == 2);
    const commit_stats& add = seen.commits.front();
    CHECK(add.kind == commit_kind::add);
    CHECK(add.succeeded == 2);
    CHECK(add.failed == 1);
    CHECK(add.unknown == 0);
    CHECK(add.conflicts == 4);
    CHECK(add.promoted == 1);
    CHECK(add.parts == 25);
    CHECK(add.times.count() == 3);
    CHECK(add.times.sum == 9ms);
    CHECK(seen.commits.back().kind == commit_kind::transact);
    CHECK(seen.commits.back().failed == 1);
    CHECK(seen.commits.back().unknown == 1);
    CHECK(seen.commits.back().parts == 0);
    CHECK(seen.deliveries.held == 0);
}

TEST_CASE("statistics: a part is never larger than its whole, on whichever thread they are read", "[threads]") {
    statistics s;
    std::atomic<bool> began{false}, over{false};
    std::size_t larger = 0, fell = 0, looks = 0;
    std::thread reader([&] {
        std::uint64_t before = 0;
        do {
            const client_stats seen = s.get();
            began = true;
            ++looks;
            larger += seen.locks.handed_over_locally + seen.locks.handed_over_remotely > seen.locks.granted;
            larger += seen.locks.overran > seen.locks.stops.count();
            if (seen.commits.empty()) continue;
            const commit_stats& c = seen.commits.front();
            larger += c.unknown > c.failed;
            const std::uint64_t not_applied = c.failed - c.unknown;
            fell += not_applied < before;
            before = not_applied;
        } while (!over);
    });
    while (!began) std::this_thread::yield();
    commit_report unknown = commit_of(commit_kind::modify, 1, 0, errc::session_expired);
    unknown.outcome_unknown = true;
    lock_wait_report handed;
    handed.from = hand_over::remote;
    lock_stop_report stopped;
    stopped.overran = true;
    for (int i = 0; i < 300'000; ++i) {
        s.ended(unknown);
        s.ended(handed);
        s.ended(stopped);
        if (i % 8 == 0) s.ended(commit_of(commit_kind::modify, 1, 0, zk_errc::no_auth));
    }
    over = true;
    reader.join();
    INFO(looks << " looks");
    CHECK(larger == 0);
    CHECK(fell == 0);
}

TEST_CASE("statistics: what has ended before it began, by clocks that differ, takes no time and nothing away") {
    statistics s;
    delivery_report back = delivery_of(delivery_end::done);
    back.waited = -5s;
    s.ended(back);
    CHECK(s.get().deliveries.waits.sum == 0s);
    CHECK(s.get().deliveries.waits.count() == 1);
    s.ended(delivery_of(delivery_end::done));
    CHECK(s.get().deliveries.waits.sum == 2s);
    CHECK(s.get().deliveries.held == 0);  // claims that were never reported
    CHECK(s.get().barriers.inside == 0);
    s.ended(step_of(barrier_step::leave));
    CHECK(s.get().barriers.inside == 0);
}

TEST_CASE("statistics: items are held from their claim on, and have waited for the first one") {
    statistics s;
    s.ended(commit_of(commit_kind::claim, 3));
    s.ended(commit_of(commit_kind::claim, 2, 1, zk_errc::bad_version));
    CHECK(s.get().deliveries.held == 3);
    s.ended(delivery_of(delivery_end::done));
    s.ended(delivery_of(delivery_end::lost, 2));
    const delivery_stats seen = s.get().deliveries;
    CHECK(seen.held == 1);
    CHECK(seen.ended_by(delivery_end::done) == 1);
    CHECK(seen.ended_by(delivery_end::lost) == 1);
    CHECK(seen.ended_by(delivery_end::rejected) == 0);
    CHECK(seen.waits.count() == 1);
    CHECK(seen.waits.sum == 2s);
    CHECK(seen.holds.count() == 2);
    CHECK(seen.holds.sum == 80ms);
}

TEST_CASE("statistics: members of barriers are inside from the end of enter() to the end of leave()") {
    statistics s;
    s.ended(step_of(barrier_step::enter));
    s.ended(step_of(barrier_step::enter));
    s.ended(step_of(barrier_step::enter, asio::error::operation_aborted));
    CHECK(s.get().barriers.inside == 2);
    s.ended(step_of(barrier_step::leave));
    barrier_report lost = step_of(barrier_step::leave, errc::session_expired);
    lost.lost = loss_reason::session_expired;
    s.ended(lost);
    const barrier_stats seen = s.get().barriers;
    CHECK(seen.inside == 0);
    CHECK(seen.entered == 2);
    CHECK(seen.left == 1);
    CHECK(seen.failed == 2);
    CHECK(seen.lost == 1);
    CHECK(seen.enters.count() == 3);
    CHECK(seen.leaves.sum == 14ms);
}

TEST_CASE("reports: what an exception means") {
    CHECK_FALSE(zkasio::failure_of(nullptr));
    CHECK(zkasio::failure_of(std::make_exception_ptr(error(zk_errc::no_auth, "put", "/q"))) == zk_errc::no_auth);
    const std::system_error aborted(asio::error::operation_aborted);
    CHECK(zkasio::failure_of(std::make_exception_ptr(aborted)) == asio::error::operation_aborted);
    CHECK(zkasio::failure_of(std::make_exception_ptr(std::runtime_error("no"))) == std::errc::operation_canceled);
}

TEST_CASE("client_observer: reports of structures, and the bytes that they may take while they wait") {
    const auto seen = std::make_shared<recording_observer>();
    rig r(rig::quick().observer(seen, seen->where.get_executor()));
    auto body = [&](client zk) -> asio::awaitable<void> {
        co_await zk.connected();
        report_commit(zk, begin_commit(commit_kind::put), "/q", nullptr);
        delivery_report item = delivery_of(delivery_end::given_back);
        item.item = "entry-100-0000000001";
        send_report(zk, item, "/q");
        send_report(zk, step_of(barrier_step::leave), "/b");
        item.item = std::string(17 * 1024 * 1024, 'x');
        send_report(zk, item, "/q");
        send_report(zk, item, "/q");
        send_report(zk, item, "/q");  // above 32 MiB
    };
    r.run(body);
    seen->look();
    REQUIRE(seen->commits.size() == 1);
    CHECK(seen->commits.front().path == "/q");
    CHECK(seen->commits.front().kind == commit_kind::put);
    CHECK_FALSE(seen->commits.front().code);
    REQUIRE(seen->deliveries.size() == 3);
    CHECK(seen->deliveries.front().path == "/q");
    CHECK(seen->deliveries.front().item == "entry-100-0000000001");
    REQUIRE(seen->barriers.size() == 1);
    CHECK(seen->barriers.front().path == "/b");
    CHECK(seen->lost == r.core->stats().reports_dropped);
}
