#include "support/catch.hpp"

#include <zkasio/detail/requests/send_queue.hpp>

#include <chrono>
#include <vector>

using namespace zkasio;
using namespace zkasio::detail;
using namespace std::chrono_literals;
using lane = send_queue::lane;

namespace {

const boot_clock::time_point now{1h};

std::vector<op_id> all_of(send_queue& q, bool window_full = false) {
    std::vector<op_id> ids;
    while (const auto id = q.next(window_full, now)) ids.push_back(*id);
    return ids;
}

}  // namespace

TEST_CASE("send queue: what is urgent goes first, then what was sent before, then the rest as it came",
          "[send_queue]") {
    send_queue q;
    q.push(lane::normal, 5);
    q.push(lane::normal, 4);
    q.push(lane::again, 3);
    q.push(lane::again, 2);  // asked for before 3
    q.push(lane::urgent, 7);
    q.push(lane::urgent, 6);
    CHECK(q.size() == 6);
    CHECK(q.waiting() == 2);
    CHECK(all_of(q) == std::vector<op_id>{7, 6, 2, 3, 5, 4});
    CHECK(q.empty());
}

TEST_CASE("send queue: with a full window only what is urgent goes", "[send_queue]") {
    send_queue q;
    q.push(lane::normal, 1);
    q.push(lane::again, 2);
    q.push(lane::urgent, 3);
    CHECK(all_of(q, true) == std::vector<op_id>{3});
    CHECK(all_of(q) == std::vector<op_id>{2, 1});
}

TEST_CASE("send queue: what comes behind a pause after a refusal passes", "[send_queue]") {
    send_queue q;
    q.push(lane::again, 1);
    q.push(lane::normal, 2);
    q.pause_again(now + 1ms);
    CHECK(all_of(q) == std::vector<op_id>{2});
    CHECK(q.next_end_of_pause(now) == now + 1ms);
    CHECK_FALSE(q.is_pause_over(now));
    CHECK(q.is_pause_over(now + 1ms));
    CHECK(q.next(false, now + 1ms) == op_id{1});
    CHECK_FALSE(q.is_pause_over(now + 1ms));
    CHECK(q.empty());
}

TEST_CASE("send queue: what is late is passed by all others, and holds up none", "[send_queue]") {
    send_queue q;
    q.push(lane::late, 1);
    q.push(lane::again, 2);
    q.push(lane::normal, 3);
    q.pause_late(now + 2ms);
    CHECK(q.size() == 3);
    CHECK(q.has_late());
    CHECK(all_of(q) == std::vector<op_id>{2, 3});
    CHECK_FALSE(q.empty());
    q.push(lane::again, 4);
    q.pause_again(now + 1ms);
    CHECK(q.next_end_of_pause(now) == now + 1ms);
    CHECK(q.next_end_of_pause(now + 1ms) == now + 2ms);
    CHECK(q.next_end_of_pause(now + 2ms) == send_queue::time_point::max());
    q.pause_late({});
    CHECK(q.is_pause_over(now));
    CHECK(all_of(q) == std::vector<op_id>{1});
}

TEST_CASE("send queue: what is put back is the next of its lane", "[send_queue]") {
    send_queue q;
    const lane l = GENERATE(lane::urgent, lane::again, lane::late, lane::normal);
    for (const op_id id : {1U, 2U, 3U}) q.push(l, id);
    const auto first = q.next(false, now);
    REQUIRE(first == op_id{1});
    q.put_back(l, *first);
    CHECK(all_of(q) == std::vector<op_id>{1, 2, 3});
}

TEST_CASE("send queue: the end of a session leaves those who wait for a connection", "[send_queue]") {
    send_queue q;
    q.push(lane::urgent, 1);
    q.push(lane::again, 2);
    q.push(lane::late, 6);
    for (const op_id id : {3U, 4U, 5U}) q.push(lane::normal, id);
    q.drop_all_but_normal();
    q.sweep([](op_id id) { return id == 4; });
    std::vector<op_id> left;
    q.for_each_normal([&](op_id id) { left.push_back(id); });
    CHECK(left == std::vector<op_id>{3, 5});
    q.clear();
    CHECK(q.empty());
}

TEST_CASE("send queue: the order stays while requests come and go", "[send_queue]") {
    send_queue q;
    op_id pushed = 0, taken = 0;
    const auto come = [&](int n) {
        for (int i = 0; i < n; ++i) q.push(lane::normal, ++pushed);
    };
    const auto go = [&](int n) {
        for (int i = 0; i < n; ++i) CHECK(q.next(false, now) == ++taken);
    };
    const int at_a_time = GENERATE(1, 7, 3000);
    come(2 * at_a_time);
    for (int i = 0; i < 20; ++i) {
        go(at_a_time);
        q.put_back(lane::normal, taken--);
        come(at_a_time);
        CHECK(q.waiting() == pushed - taken);
    }
    q.sweep([&](op_id id) { return id == taken + 1; });
    ++taken;
    q.put_back(lane::normal, taken--);
    go(static_cast<int>(pushed - taken));
    CHECK(q.empty());
    CHECK_FALSE(q.next(false, now));
}
