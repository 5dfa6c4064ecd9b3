#include "../examples/span_observer.hpp"
#include "support/catch.hpp"

#include <zkasio/error.hpp>

#include <string>
#include <vector>

using namespace spans;
using namespace zkasio;
using namespace std::chrono_literals;

namespace {

class span_recorder final : public span_observer {
public:
    void finished(span s) override { spans.push_back(std::move(s)); }
    std::vector<span> spans;
};

template <class T>
T attribute(const span& s, std::string_view key) {
    for (const auto& [name, value] : s.attributes)
        if (name == key) return std::get<T>(value);
    FAIL("no attribute " << key);
    return {};
}

bool has_attribute(const span& s, std::string_view key) {
    for (const auto& [name, value] : s.attributes)
        if (name == key) return true;
    return false;
}

}  // namespace

TEST_CASE("span_observer: a request is a client's span, from asking to its end") {
    span_recorder to;
    operation_report r;
    r.operation = "set";
    r.path = "/a\n";
    r.asked = boot_clock::now() - 10s;
    r.sent = r.asked + 1s;
    r.ended = r.asked + 3s;
    to.operation(r);
    r.code = zk_errc::connection_loss;
    r.outcome_unknown = true;
    r.cancelled = true;
    to.operation(r);
    r.internal = true;
    to.operation(r);

    REQUIRE(to.spans.size() == 2);  // the library's own are nobody's trace
    const span& good = to.spans[0];
    CHECK(good.name == "set");
    CHECK(good.kind == span::span_kind::client);
    CHECK(good.end - good.start == 3s);
    CHECK(good.start < std::chrono::system_clock::now() - 9s);
    CHECK(good.start > std::chrono::system_clock::now() - 30s);
    CHECK_FALSE(good.failed);
    CHECK(attribute<std::string>(good, "db.system.name") == "zookeeper");
    CHECK(attribute<std::string>(good, "db.operation.name") == "set");
    CHECK(attribute<std::string>(good, "zkasio.path") == "/a\\x0a");
    CHECK(attribute<std::int64_t>(good, "zkasio.queue_ns") == 1'000'000'000);
    CHECK_FALSE(has_attribute(good, "error.type"));
    CHECK_FALSE(has_attribute(good, "zkasio.outcome_unknown"));
    CHECK_FALSE(has_attribute(good, "zkasio.cancelled"));
    const span& bad = to.spans[1];
    CHECK(bad.failed);
    CHECK(bad.description == "connection lost");
    CHECK(attribute<std::string>(bad, "error.type") == "zookeeper:-4");
    CHECK(attribute<bool>(bad, "zkasio.outcome_unknown"));
    CHECK(attribute<bool>(bad, "zkasio.cancelled"));
}

TEST_CASE("span_observer: waits for locks and the time with them are internal spans") {
    span_recorder to;
    lock_wait_report wait;
    wait.path = "/locks/orders";
    wait.token = 7;
    wait.from = hand_over::local;
    wait.queue_length = 3;
    wait.asked = boot_clock::now() - 10s;
    wait.ended = wait.asked + 2s;
    to.lock_wait(wait);
    lock_hold_report hold;
    hold.path = "/locks/orders";
    hold.kind = lock_kind::shared;
    hold.token = 7;
    hold.lost = loss_reason::session_expired;
    hold.granted = wait.ended;
    hold.ended = hold.granted + 5s;
    to.lock_hold(hold);

    REQUIRE(to.spans.size() == 2);
    CHECK(to.spans[0].name == "lock wait");
    CHECK(to.spans[0].kind == span::span_kind::internal);
    CHECK(to.spans[0].end - to.spans[0].start == 2s);
    CHECK(attribute<std::string>(to.spans[0], "zkasio.lock.path") == "/locks/orders");
    CHECK(attribute<std::string>(to.spans[0], "zkasio.lock.handed_over") == "local");
    CHECK(attribute<std::int64_t>(to.spans[0], "zkasio.lock.queue_length") == 3);
    CHECK(to.spans[1].name == "lock hold");
    CHECK(to.spans[1].failed);
    CHECK(to.spans[1].description == "session expired");
    CHECK(attribute<std::string>(to.spans[1], "zkasio.lock.kind") == "shared");
    CHECK(attribute<std::int64_t>(to.spans[1], "zkasio.lock.token") == 7);
}

TEST_CASE("span_observer: writes of structures, and the work on items") {
    span_recorder to;
    commit_report added;
    added.kind = commit_kind::add;
    added.path = "/n";
    added.parts = 20;
    added.conflicts = 3;
    added.promoted = true;
    added.asked = boot_clock::now() - 10s;
    added.ended = added.asked + 2s;
    to.commit(added);
    commit_report changed;
    changed.kind = commit_kind::transact;
    changed.code = errc::session_expired;
    changed.outcome_unknown = true;
    to.commit(changed);
    delivery_report item;
    item.path = "/jobs";
    item.item = "entry-100-0000000001";
    item.attempt = 2;
    item.waited = 1500ms;
    item.claimed = added.asked;
    item.ended = item.claimed + 5s;
    to.delivery(item);
    item.how = delivery_end::lost;
    item.lost = loss_reason::lease_ended;
    item.waited.reset();
    to.delivery(item);

    REQUIRE(to.spans.size() == 4);
    CHECK(to.spans[0].name == "commit add");
    CHECK(to.spans[0].kind == span::span_kind::internal);
    CHECK(to.spans[0].end - to.spans[0].start == 2s);
    CHECK(attribute<std::string>(to.spans[0], "zkasio.path") == "/n");
    CHECK(attribute<std::int64_t>(to.spans[0], "zkasio.commit.parts") == 20);
    CHECK(attribute<std::int64_t>(to.spans[0], "zkasio.commit.conflicts") == 3);
    CHECK(attribute<bool>(to.spans[0], "zkasio.commit.promoted"));
    CHECK_FALSE(to.spans[0].failed);
    CHECK(to.spans[1].failed);
    CHECK(attribute<bool>(to.spans[1], "zkasio.outcome_unknown"));
    CHECK_FALSE(has_attribute(to.spans[1], "zkasio.path"));
    CHECK(to.spans[2].name == "delivery");
    CHECK(attribute<std::string>(to.spans[2], "zkasio.queue.ended") == "done");
    CHECK(attribute<std::int64_t>(to.spans[2], "zkasio.queue.attempt") == 2);
    CHECK(attribute<std::int64_t>(to.spans[2], "zkasio.queue.waited_ms") == 1500);
    CHECK_FALSE(to.spans[2].failed);
    CHECK(to.spans[3].failed);
    CHECK(to.spans[3].description == "lease ended");
    CHECK_FALSE(has_attribute(to.spans[3], "zkasio.queue.waited_ms"));
}
