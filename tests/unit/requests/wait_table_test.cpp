#include "support/test_client.hpp"

#include <zkasio/detail/requests/wait_table.hpp>
#include <zkasio/detail/session/event_feed.hpp>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace zkasio::test;

namespace {

using codes = std::vector<std::error_code>;

class collector {
public:
    explicit collector(codes& all) : all_(&all) {}
    void deliver(wait_end&& end) noexcept { all_->push_back(end.code); }

private:
    codes* all_;
};

// A wait table with all that it needs. Nothing of it waits for the loop, except log lines.
struct table {
    test_loop loop;
    std::vector<std::string> lines;
    logger log{strand_type(loop.executor()), [this](std::string_view line) { lines.emplace_back(line); }};
    fork_mark here;
    wait_table waits{log, here};
    codes seen;
    one_shot_ptr event = std::make_shared<one_shot_state>();

    void wait(op_id id, const one_shot_ptr& on) { waits.wait(id, on, receiver(collector(seen))); }
    void wait(op_id id) { wait(id, event); }
};

}  // namespace

TEST_CASE("waits: all who wait get the code, and who comes later gets it at once", "[waits]") {
    table t;
    for (const op_id id : {1U, 2U, 3U}) t.wait(id);
    CHECK(t.waits.size() == 3);
    t.waits.fire(t.event, errc::lock_lost);
    CHECK(t.seen == codes(3, errc::lock_lost));
    CHECK(t.waits.size() == 0);
    t.wait(4);
    CHECK(t.seen.size() == 4);
    t.waits.fire(t.event);  // once is enough
    CHECK(t.seen == codes(4, errc::lock_lost));
}

TEST_CASE("waits: one who is cancelled leaves, the others stay", "[waits]") {
    table t;
    const op_id who = GENERATE(1U, 2U, 3U);  // the first has a place of its own
    for (const op_id id : {1U, 2U, 3U}) t.wait(id);
    CHECK(t.waits.cancel(who));
    CHECK(t.seen == codes{asio::error::operation_aborted});
    CHECK_FALSE(t.waits.cancel(who));
    CHECK_FALSE(t.waits.cancel(99));
    t.waits.fire(t.event);
    CHECK(t.seen.size() == 3);
}

TEST_CASE("waits: what is to follow is called before the waiters are told, and what it throws is logged", "[waits]") {
    table t;
    std::optional<std::size_t> told_before;
    t.waits.then(*t.event, [&] {
        told_before = t.seen.size();
        throw std::runtime_error("oh");
    });
    t.wait(1);
    t.waits.fire(t.event);
    CHECK(told_before == std::size_t{0});
    CHECK(t.seen.size() == 1);
    bool at_once = false;
    t.waits.then(*t.event, [&] { at_once = true; });
    CHECK(at_once);
    t.loop.run();
    CHECK(t.lines == std::vector<std::string>{"a callback has thrown: oh"});
}

TEST_CASE("waits: what is fired from within what follows does not harm those who are being told", "[waits]") {
    table t;
    const auto other = std::make_shared<one_shot_state>();
    t.waits.then(*t.event, [&] { t.waits.fire(other, errc::session_expired); });
    t.wait(1, other);
    t.wait(2);
    t.waits.fire(t.event);
    CHECK(t.seen == codes{errc::session_expired, std::error_code()});
}

TEST_CASE("waits: after the end nobody waits any more, but what has happened before counts", "[waits]") {
    table t;
    const auto closed = std::make_shared<one_shot_state>(), before = std::make_shared<one_shot_state>();
    t.waits.fire(before);
    t.wait(1);
    t.wait(2, closed);
    t.waits.no_more(errc::client_closed);
    t.waits.end_all(errc::client_closed, closed);
    CHECK(t.seen == codes{errc::client_closed});
    t.wait(3);
    CHECK(t.seen.back() == errc::client_closed);
    t.wait(4, before);
    CHECK(t.seen.back() == std::error_code());
    t.waits.fire(closed);
    CHECK(t.seen.size() == 4);
    CHECK(t.waits.size() == 0);
    t.waits.fire(t.event);  // nobody is left who would be told twice
    CHECK(t.seen.size() == 4);
}

TEST_CASE("events: each reader reads all, in order, from where it began", "[waits]") {
    table t;
    event_feed feed(t.waits);
    const auto early = std::make_shared<event_subscription>(), late = std::make_shared<event_subscription>();
    feed.subscribe(early, {session_state::connecting, 0, "first"});
    feed.publish({session_state::connected, 1, "up"});
    feed.subscribe(late, {session_state::connected, 1, "first"});
    feed.publish({session_state::suspended, 1, "down"});
    const auto read = [](event_subscription& s) {
        std::vector<std::string> reasons;
        while (const auto e = s.take()) reasons.push_back(e->reason);
        return reasons;
    };
    CHECK(read(*early) == std::vector<std::string>{"first", "up", "down"});
    CHECK(read(*late) == std::vector<std::string>{"first", "down"});
}

TEST_CASE("events: who waits is told of the next, and at once when there is one", "[waits]") {
    table t;
    event_feed feed(t.waits);
    const auto reader = std::make_shared<event_subscription>();
    feed.subscribe(reader, {session_state::connecting, 0, "first"});
    const auto wait = [&](op_id id) { feed.wait(id, reader, receiver(collector(t.seen))); };
    wait(1);
    CHECK(t.seen.size() == 1);
    reader->take();
    wait(2);
    CHECK(t.seen.size() == 1);
    feed.publish({session_state::connected, 1, "up"});
    CHECK(t.seen.size() == 2);
    CHECK(reader->take()->state == session_state::connected);
}

TEST_CASE("events: a reader who does not read keeps the newest", "[waits]") {
    table t;
    event_feed feed(t.waits);
    const auto reader = std::make_shared<event_subscription>();
    feed.subscribe(reader, {session_state::connecting, 0, "first"});
    for (int i = 0; i < 300; ++i) feed.publish({session_state::connected, i, ""});
    std::size_t count = 0;
    std::int64_t last = -1;
    for (auto e = reader->take(); e; e = reader->take(), ++count) last = e->session_id;
    CHECK(count == 256);
    CHECK(last == 299);
}
