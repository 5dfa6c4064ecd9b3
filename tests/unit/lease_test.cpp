#include "support/catch.hpp"

#include <zkasio/detail/lease.hpp>

#include <algorithm>
#include <chrono>
#include <deque>
#include <random>
#include <utility>
#include <vector>

using zkasio::detail::lease;
using namespace std::chrono_literals;

namespace {

using duration = lease::duration;
using time_point = lease::time_point;

constexpr duration T = 12s;            // divides well
constexpr duration half_tick = T / 4;  // at most
constexpr duration drift = T / 1000;
constexpr duration rtt = 10ms;
constexpr time_point start{1000s};

// Readable when a check fails.
duration after_start(time_point t) { return t - start; }
duration end_of(const lease& l) { return after_start(l.end()); }

// The lease that begins when the leader has heard of us at `heard`.
time_point from(time_point heard) { return heard + T - drift; }
// The lease of a write whose predecessors prove nothing: pings are T/3 apart, and half a tick on their way.
time_point first(time_point sent) { return from(sent - T / 3 - T / 50 - half_tick); }

lease connected(time_point at = start) {
    lease l;
    l.connected(at, T);
    return l;
}

// The rule as it is written down, with everything remembered.
class rule {
public:
    explicit rule(time_point handshake) : end_(from(handshake)) {}
    void connected(time_point handshake) {
        answered_.clear();
        end_ = std::max(end_, from(handshake));
    }
    void stalled(time_point begin, time_point end) { stalls_.push_back({begin, end}); }
    void write_answered(time_point sent, time_point answered) {
        time_point on_time = sent;
        for (const auto& [begin, end] : stalls_)
            if (end + half_tick > sent) on_time = std::min(on_time, begin);
        end_ = std::max(end_, first(on_time));
        for (const auto& earlier : answered_)
            if (earlier.second + half_tick <= sent) end_ = std::max(end_, from(earlier.first));
        answered_.push_back({sent, answered});
    }
    time_point end() const { return end_; }

private:
    time_point end_;
    std::vector<std::pair<time_point, time_point>> answered_, stalls_;
};

// A lease whose handshake is so long ago that it proves nothing any more.
lease long_connected() { return connected(start - 100 * T); }

}  // namespace

TEST_CASE("lease: there is none before the first connection", "[lease]") {
    const lease l;
    CHECK(l.end() == time_point{});
    CHECK(l.session_timeout() == 0s);
}

TEST_CASE("lease: the handshake counts from its sending", "[lease]") {
    const lease l = connected();
    CHECK(l.session_timeout() == T);
    CHECK(end_of(l) == after_start(from(start)));
    CHECK(end_of(l) < after_start(start + T));  // clocks differ
    CHECK(after_start(l.heartbeat_due()) == after_start(start + T / 4));
}

TEST_CASE("lease: the first write is worth 5T/12, less a little", "[lease]") {
    lease l = long_connected();
    l.write_answered(start, start + rtt);
    CHECK(end_of(l) == after_start(first(start)));
    CHECK(end_of(l) <= after_start(start + T * 5 / 12));
    CHECK(end_of(l) > after_start(start + T * 5 / 12 - T / 40));
    CHECK(after_start(l.heartbeat_due()) == after_start(start + rtt + T / 4));
}

TEST_CASE("lease: the time of the answer extends nothing", "[lease]") {
    lease quick = long_connected(), slow = long_connected();
    quick.write_answered(start, start + rtt);
    slow.write_answered(start, start + T / 3);
    CHECK(end_of(quick) == end_of(slow));
}

TEST_CASE("lease: heartbeat k proves k-1", "[lease]") {
    lease l = long_connected();
    time_point sent = start;
    l.write_answered(sent, sent + rtt);
    for (int k = 1; k < 50; ++k) {
        const time_point previous = sent;
        sent = previous + rtt + T / 4;  // when heartbeat_due() says
        REQUIRE(after_start(l.heartbeat_due()) == after_start(sent));
        l.write_answered(sent, sent + rtt);
        REQUIRE(end_of(l) == after_start(from(previous)));
        REQUIRE(end_of(l) > after_start(sent + T / 2));  // so one heartbeat may fail, and the next, without loss
    }
}

TEST_CASE("lease: the boundary of half a tick", "[lease]") {
    const time_point answered = start + rtt;
    lease enough = long_connected(), too_little = long_connected();
    for (lease* l : {&enough, &too_little}) l->write_answered(start, answered);
    enough.write_answered(answered + half_tick, answered + half_tick + rtt);
    CHECK(end_of(enough) == after_start(from(start)));
    too_little.write_answered(answered + half_tick - 1ns, answered + half_tick + rtt);
    CHECK(end_of(too_little) == after_start(first(answered + half_tick - 1ns)));
}

TEST_CASE("lease: what counts is when the earlier write was answered", "[lease]") {
    // Until then the leader may not have had it.
    lease l = long_connected();
    l.write_answered(start, start + T / 4);
    l.write_answered(start + T / 4 + 1ms, start + T / 2);
    CHECK(end_of(l) == after_start(first(start + T / 4 + 1ms)));
    l.write_answered(start + T / 2, start + T / 2 + rtt);
    CHECK(end_of(l) == after_start(std::max(from(start), first(start + T / 2))));
}

TEST_CASE("lease: a burst of writes proves no more than its last", "[lease]") {
    lease l = long_connected();
    time_point sent = start;
    for (int i = 0; i < 100; ++i) {
        sent = start + i * (half_tick / 200);
        l.write_answered(sent, sent + rtt);
        REQUIRE(end_of(l) == after_start(first(sent)));
    }
    // The next one, half a tick later, proves it; a sixteenth of T is the resolution.
    const time_point next = sent + rtt + half_tick;
    l.write_answered(next, next + rtt);
    CHECK(end_of(l) <= after_start(from(sent)));
    CHECK(end_of(l) > after_start(from(sent - T / 16)));
}

TEST_CASE("lease: many writes do not push out the one that proves", "[lease]") {
    // A write every T/100 for a long time: the one half a tick ago has to be remembered among all.
    lease l = long_connected();
    time_point sent = start;
    for (int i = 0; i < 1000; ++i, sent += T / 100) {
        l.write_answered(sent, sent + rtt);
        if (i < 100) continue;
        REQUIRE(end_of(l) <= after_start(from(sent - half_tick - rtt)));
        REQUIRE(end_of(l) > after_start(from(sent - half_tick - rtt - T / 100 - T / 16)));
    }
}

TEST_CASE("lease: it never gets shorter", "[lease]") {
    lease l = connected();
    l.write_answered(start + 1s, start + 1s + rtt);
    CHECK(end_of(l) == after_start(from(start)));
    l.stalled(start + 1s, start + 10s);
    CHECK(end_of(l) == after_start(from(start)));
    l.connected(start - 5s, T);
    CHECK(end_of(l) == after_start(from(start)));
}

TEST_CASE("lease: a reconnect counts from its handshake, and forgets the writes before", "[lease]") {
    lease l = long_connected();
    l.write_answered(start, start + rtt);
    const time_point handshake = start + T / 4 + rtt;
    l.connected(handshake, T);
    CHECK(end_of(l) == after_start(from(handshake)));
    CHECK(after_start(l.heartbeat_due()) == after_start(handshake + T / 4));

    // The write before went to another server, which may not have reported us in time.
    lease other = long_connected();
    other.write_answered(start, start + rtt);
    other.connected(start - 50 * T, T);  // its own lease does not matter here
    other.write_answered(start + rtt + half_tick, start + rtt + half_tick + rtt);
    CHECK(end_of(other) == after_start(first(start + rtt + half_tick)));
}

TEST_CASE("lease: the timeout is the one of the last handshake", "[lease]") {
    lease l = long_connected();
    l.connected(start, 2 * T);
    CHECK(l.session_timeout() == 2 * T);
    CHECK(end_of(l) == after_start(start + 2 * T - 2 * drift));
    CHECK(after_start(l.heartbeat_due()) == after_start(start + T / 2));
}

TEST_CASE("lease: after a stall pings were late", "[lease]") {
    const time_point stall = start, resumed = start + T / 2;
    SECTION("a write right after it counts from the beginning of the stall") {
        lease l = long_connected();
        l.stalled(stall, resumed);
        l.write_answered(resumed + 1ms, resumed + rtt);
        CHECK(end_of(l) == after_start(first(stall)));
    }
    SECTION("also the second one, for half a tick") {
        lease l = long_connected();
        l.stalled(stall, resumed);
        l.write_answered(resumed + 1ms, resumed + rtt);
        l.write_answered(resumed + half_tick - 1ns, resumed + half_tick);
        CHECK(end_of(l) == after_start(first(stall)));
    }
    SECTION("then the leader has heard of us again") {
        lease l = long_connected();
        l.stalled(stall, resumed);
        l.write_answered(resumed + half_tick, resumed + half_tick + rtt);
        CHECK(end_of(l) == after_start(first(resumed + half_tick)));
    }
    SECTION("a write proves an earlier one in any case") {
        lease l = long_connected();
        l.write_answered(stall - T / 8, stall - T / 8 + rtt);
        l.stalled(stall, resumed);
        l.write_answered(resumed + 1ms, resumed + rtt);
        CHECK(end_of(l) == after_start(from(stall - T / 8)));
    }
}

TEST_CASE("lease: a write that was sent before the stall counts from its own sending", "[lease]") {
    // Its answer came while we did not look. It was the leader's word of then, not of when the stall began.
    lease l = long_connected();
    const time_point sent = start, stall = start + T / 4, resumed = stall + T / 2;
    l.stalled(stall, resumed);
    l.write_answered(sent, resumed + 1ms);
    CHECK(end_of(l) == after_start(first(sent)));
}

TEST_CASE("lease: a write between two stalls", "[lease]") {
    // It was sent before the leader could have heard of a ping, and its answer found nobody looking.
    const time_point first_stall = start, resumed = start + T / 2, sent = resumed + 1ms;
    const duration gap = GENERATE(duration(2ms), duration(T / 8), duration(T / 3));
    lease l = long_connected();
    l.stalled(first_stall, resumed);
    l.stalled(resumed + gap, resumed + gap + T / 2);
    l.write_answered(sent, resumed + gap + T / 2 + 1ms);
    CHECK(end_of(l) <= after_start(first(first_stall)));
}

TEST_CASE("lease: random histories against the rule itself", "[lease]") {
    // Answers come in order, T/8 after their requests at the latest, or at once after a stall.
    const bool with_stalls = GENERATE(false, true);
    const bool with_reconnects = GENERATE(false, true);
    std::mt19937_64 random(with_stalls * 2u + with_reconnects);
    const auto up_to = [&](duration d) {
        return duration(static_cast<duration::rep>(random() % static_cast<std::uint64_t>(d.count() + 1)));
    };
    for (int round = 0; round < 300; ++round) {
        const duration pace = T / (1 + static_cast<int>(random() % 64));
        time_point now = start;
        lease l = connected(now);
        rule expected(now);
        std::deque<time_point> under_way;
        for (int event = 0; event < 200; ++event) {
            const time_point due = under_way.empty() ? time_point::max() : under_way.front() + T / 8;
            now = std::clamp(now + up_to(pace), now, std::max(now, due));
            const auto what = random() % 100;
            if (with_reconnects && what < 2) {
                now += up_to(T / 2);
                under_way.clear();
                l.connected(now, T);
                expected.connected(now);
            } else if (now >= due || (!under_way.empty() && what < 50)) {
                l.write_answered(under_way.front(), now);
                expected.write_answered(under_way.front(), now);
                under_way.pop_front();
                REQUIRE(end_of(l) <= after_start(expected.end()));
                REQUIRE(after_start(l.heartbeat_due()) == after_start(now + T / 4));
                if (!with_stalls) REQUIRE(end_of(l) >= after_start(expected.end() - T / 16));
            } else if (with_stalls && what > 94) {
                const time_point begin = now;
                now += T / 3 + up_to(T / 2);
                l.stalled(begin, now);
                expected.stalled(begin, now);
            } else {
                under_way.push_back(now);
            }
        }
    }
}
