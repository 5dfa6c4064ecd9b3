#include "support/catch.hpp"
#include "unit/session/lease_times.hpp"

#include <zkasio/detail/session/lease.hpp>

#include <algorithm>
#include <chrono>
#include <deque>
#include <random>
#include <utility>
#include <vector>

namespace zkasio::test::lease_times {

using detail::half_tick;
using detail::lease;

namespace {

lease connected(time_point at = start, int renewals = 4) {
    lease l;
    l.connected(at, T, duration::zero(), renewals);
    return l;
}

// A lease whose handshake is so long ago that it proves nothing any more.
lease long_connected() { return connected(start - 100 * T); }
const time_point long_ago = from(start - 100 * T);

// The rule as it is written down, with everything remembered.
class rule {
public:
    explicit rule(time_point handshake) : end_(from(handshake)) {}
    void connected(time_point handshake) {
        answered_.clear();
        end_ = std::max(end_, from(handshake));
    }
    void answered(time_point sent, time_point answered) { answered_.push_back({sent, answered}); }
    void write_answered(time_point sent, time_point at) {
        for (const auto& earlier : answered_)
            if (earlier.second + gap <= sent) end_ = std::max(end_, from(earlier.first));
        answered(sent, at);
    }
    time_point end() const { return end_; }

private:
    time_point end_;
    std::vector<std::pair<time_point, time_point>> answered_;
};

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

TEST_CASE("lease: answered requests are worth nothing without a write, and a write nothing without them", "[lease]") {
    lease l = long_connected();
    for (int i = 0; i < 30; ++i) l.answered(start + i * T / 8, start + i * T / 8 + rtt);
    CHECK(end_of(l) == after_start(long_ago));
    lease other = long_connected();
    other.write_answered(start, start + rtt);
    CHECK(end_of(other) == after_start(long_ago));
    CHECK(after_start(other.heartbeat_due()) == after_start(start + T / 4));  // from its sending
}

TEST_CASE("lease: a write proves the last read that was answered half a tick before it was sent", "[lease]") {
    const auto tick = GENERATE(0s, 1s, 6s, 10s);  // 0: not known
    const duration half_tick = tick == 0s ? half : duration(tick) / 2;
    lease l;
    l.connected(start - 100 * T, T, half_tick);
    const duration pace = l.read_interval();
    CHECK(pace == T / 8);
    for (time_point t = start - 2 * T; t <= start; t += pace) l.answered(t, t + rtt);
    l.write_answered(start + 1ms, start + rtt);
    CHECK(l.end() > start + T - half_tick - late - rtt - pace - drift);
    CHECK(l.end() <= start + T - half_tick - late - rtt + 1ms - drift);
}

TEST_CASE("lease: a first write of a session that was idle is worth 0.6 T, and 0.48 T if it has had no holds",
          "[lease]") {
    const bool has_holds = GENERATE(false, true);
    for (int phase = 0; phase < 100; ++phase) {
        lease l = long_connected();
        const duration pace = has_holds ? l.read_interval() : l.idle_interval();
        CHECK(pace < T / 3);  // when the C library would send a ping
        const time_point sent = start + phase * pace / 100;
        for (time_point t = start - T; t <= sent; t += pace) l.answered(t, t + rtt);
        l.write_answered(sent, sent + rtt);
        REQUIRE(l.end() >= sent + (has_holds ? T * 6 / 10 : T * 48 / 100));
    }
}

TEST_CASE("lease: when a heartbeat is sent, so much is left", "[lease]") {
    struct expectation {
        int renewals, left;  // per mille of T, less a round trip
    };
    const auto of = GENERATE(expectation{4, 359}, expectation{3, 276}, expectation{2, 109});
    lease l = connected(start - 100 * T, of.renewals);
    CHECK(l.renewal_interval() == T / of.renewals);
    const int late_by = GENERATE(0, 1, 2, 3);  // eighths of T/8: the reads have any phase
    time_point last = start, now = start;
    l.answered(start - T / 2, start - T / 2 + rtt);
    for (int i = 0; i < 400; ++i) {
        const time_point read = last + l.read_interval() + late_by * T / 64 * (i % 2), due = l.heartbeat_due();
        now = last = std::max(now, std::min(read, due));
        if (now < due) {
            l.answered(now, now + rtt);
            continue;
        }
        const duration left = l.end() - now;
        if (late_by == 0) REQUIRE((i < 40 || left >= T * of.left / 1000 - rtt - drift));
        REQUIRE((i < 40 || left >= T * 9 / 16 - T / of.renewals - rtt));
        l.write_answered(now, now + rtt);
    }
}

// A client over a link of a given round trip, which sends reads and heartbeats when they are due, one request at a time.
TEST_CASE("lease: with round trips of 0.12 T, however rarely it is renewed, it does not end", "[lease]") {
    const int renewals = GENERATE(4, 3, 2);
    const duration trip = T * 12 / 100;
    lease l = connected(start - T, renewals);
    duration least = T;
    int writes = 0;
    time_point now = start, read = start;
    for (int i = 0; i < 400; ++i) {
        now = std::max(now, std::min(read, l.heartbeat_due()));
        const bool beats = l.heartbeat_due() <= now;
        if (beats && i > 40) {
            least = std::min(least, l.end() - now);
            ++writes;
        }
        if (beats)
            l.write_answered(now, now + trip);
        else
            l.answered(now, now + trip);
        read = now + std::max(trip, l.read_interval());
        now += trip;
    }
    CHECK(least > trip);
    CHECK(writes > 0);
}

TEST_CASE("lease: the time of the answer extends nothing", "[lease]") {
    lease quick = long_connected(), slow = long_connected();
    for (lease* l : {&quick, &slow}) l->answered(start - T / 2, start - T / 2 + rtt);
    quick.write_answered(start, start + rtt);
    slow.write_answered(start, start + T / 3);
    CHECK(end_of(quick) == end_of(slow));
    CHECK(end_of(quick) == after_start(from(start - T / 2)));
}

TEST_CASE("lease: the boundary of half a tick", "[lease]") {
    const time_point answered = start + rtt;
    lease enough = long_connected(), too_little = long_connected();
    for (lease* l : {&enough, &too_little}) l->answered(start, answered);
    enough.write_answered(answered + gap, answered + gap + rtt);
    CHECK(end_of(enough) == after_start(from(start)));
    too_little.write_answered(answered + gap - 1ns, answered + gap + rtt);
    CHECK(end_of(too_little) == after_start(long_ago));
}

TEST_CASE("lease: what counts is when the earlier request was answered", "[lease]") {
    // Until then the follower may not have had it.
    const bool write = GENERATE(false, true);
    lease l = long_connected();
    if (write)
        l.write_answered(start, start + T / 4);
    else
        l.answered(start, start + T / 4);
    l.write_answered(start + gap + 1ms, start + T / 2);
    CHECK(end_of(l) == after_start(long_ago));
    l.write_answered(start + T / 4 + gap, start + T / 4 + gap + rtt);
    CHECK(end_of(l) == after_start(from(start)));
}

TEST_CASE("lease: a burst of requests does not push out the one that proves", "[lease]") {
    const auto pace = GENERATE(as<duration>{}, T / 1000, T / 100, T / 33, T / 17, T / 16, T / 15, T / 8);
    const bool writes = GENERATE(false, true);
    lease l = long_connected();
    time_point sent = start;
    for (int i = 0; i < 2000; ++i, sent += pace) {
        if (writes || i % 100 == 99)
            l.write_answered(sent, sent + rtt);
        else
            l.answered(sent, sent + rtt);
        if (i < 1000 || (!writes && i % 100 != 99)) continue;
        REQUIRE(end_of(l) <= after_start(from(sent - gap - rtt)));
        REQUIRE(end_of(l) >= after_start(from(sent - gap - rtt - std::max<duration>(pace, T / 16))));
    }
}

TEST_CASE("lease: it gets no shorter while the timeout stays", "[lease]") {
    lease l = connected();
    l.answered(start - T, start - T + rtt);
    l.write_answered(start + 1s, start + 1s + rtt);
    CHECK(end_of(l) == after_start(from(start)));
    l.connected(start - 5s, T);
    CHECK(end_of(l) == after_start(from(start)));
}

TEST_CASE("lease: a reconnect counts from its handshake, and forgets the requests before", "[lease]") {
    lease l = long_connected();
    l.write_answered(start, start + rtt);
    const time_point handshake = start + T / 4 + rtt;
    l.connected(handshake, T);
    CHECK(end_of(l) == after_start(from(handshake)));
    CHECK(after_start(l.heartbeat_due()) == after_start(handshake + T / 4));

    // The requests before went to another server, which may not have reported us in time.
    lease other = long_connected();
    other.answered(start, start + rtt);
    other.connected(start - 50 * T, T);  // its own lease does not matter here
    other.write_answered(start + rtt + gap, start + rtt + gap + rtt);
    CHECK(end_of(other) == after_start(from(start - 50 * T)));
}

TEST_CASE("lease: the timeout is the one of the last handshake", "[lease]") {
    lease l = long_connected();
    l.connected(start, 2 * T);
    CHECK(l.session_timeout() == 2 * T);
    CHECK(end_of(l) == after_start(start + 2 * T - 2 * drift));
    CHECK(after_start(l.heartbeat_due()) == after_start(start + T / 2));
}

TEST_CASE("lease: a reconnect that is granted a shorter timeout sets the end anew", "[lease]") {
    // The leader does, too: from the handshake on it counts by the new one.
    lease l = connected();
    l.connected(start + 1s, T / 3);
    CHECK(end_of(l) == 1s + T / 3 - drift / 3);
    l.connected(start + 2s, T / 3);
    CHECK(end_of(l) == 2s + T / 3 - drift / 3);
}

TEST_CASE("lease: from when on a write lengthens it", "[lease]") {
    lease l = long_connected();
    CHECK(l.renewable_from() == time_point{});  // there is nothing that it could prove; it will be proven itself
    l.answered(start - 102 * T, start);         // older than the handshake
    CHECK(l.renewable_from() == time_point{});
    l.answered(start, start + rtt);
    l.answered(start + T / 8, start + T / 8 + rtt);
    CHECK(after_start(l.renewable_from()) == after_start(start + rtt + gap));
    l.write_answered(l.renewable_from(), start + T / 2);
    CHECK(end_of(l) == after_start(from(start)));
    CHECK(after_start(l.renewable_from()) == after_start(start + T / 8 + rtt + gap));
}

TEST_CASE("lease: half a tick, as far as it is known", "[lease]") {
    CHECK(half_tick(0s, 10s, 10s) == 2500ms);
    CHECK(half_tick(2s, 10s, 10s) == 1s);
    CHECK(half_tick(2s, 10s, 8s) == 1s);
    CHECK(half_tick(2s, 2s, 2s) == 1s);     // a custom minSessionTimeout
    CHECK(half_tick(2s, 1s, 4s) == 1s);     // the servers' least, which is two ticks
    CHECK(half_tick(500ms, 1s, 4s) == 1s);  // so ticks of half a second are not what they have
    CHECK(half_tick(5s, 1s, 4s) == 2500ms);
}

TEST_CASE("lease: after a silent time it is renewed as soon as it can be", "[lease]") {
    lease l = connected();
    const time_point end = l.end(), back = start + T * 7 / 12;
    l.answered(back, back);
    l.write_answered(back, back);
    const time_point first = l.heartbeat_due();
    CHECK(after_start(first) == after_start(back + T / 4));
    l.write_answered(first, first);  // a little too early to prove what was answered at `back`
    CHECK(l.end() == end);
    const time_point second = l.heartbeat_due();
    CHECK(after_start(second) == after_start(back + T / 4 + T / 64));
    l.write_answered(second, second);
    CHECK(l.end() > back + T - T / 100);
    CHECK(after_start(l.heartbeat_due()) == after_start(second + T / 4));
}

TEST_CASE("lease: random histories against the rule itself", "[lease]") {
    // Answers come in order, T/8 after their requests at the latest.
    const bool with_reconnects = GENERATE(false, true);
    const int renewals = GENERATE(4, 3, 2);
    std::mt19937_64 random(with_reconnects);
    const auto up_to = [&](duration d) {
        return duration(static_cast<duration::rep>(random() % static_cast<std::uint64_t>(d.count() + 1)));
    };
    for (int round = 0; round < 600; ++round) {
        const duration pace = T / (1 + static_cast<int>(random() % 64));
        const unsigned writes = 1 + static_cast<unsigned>(random() % 100);
        time_point now = start;
        lease l = connected(now, renewals);
        rule expected(now);
        std::deque<time_point> under_way;
        duration longest_pause{};
        time_point last = now;
        for (int event = 0; event < 200; ++event) {
            const time_point due = under_way.empty() ? time_point::max() : under_way.front() + T / 8;
            now = std::clamp(now + up_to(pace), now, std::max(now, due));
            const auto what = random() % 100;
            if (with_reconnects && what < 2) {
                now += up_to(T / 2);
                under_way.clear();
                l.connected(now, T, duration::zero(), renewals);
                expected.connected(now);
            } else if (now >= due || (!under_way.empty() && what < 50)) {
                const time_point sent = under_way.front();
                if (random() % 100 < writes) {
                    l.write_answered(sent, now);
                    expected.write_answered(sent, now);
                    const time_point next = l.heartbeat_due();
                    if (next != sent + T / renewals) {  // never later; earlier only where a short lease can be renewed
                        REQUIRE(next < sent + T / renewals);
                        const duration trips = std::min<duration>(2 * (now - sent), T * 5 / 16);
                        REQUIRE(next >= l.end() - std::max<duration>(T * 9 / 16 - T / renewals, trips));
                        REQUIRE(next >= l.renewable_from());
                        REQUIRE(l.renewable_from() != time_point());
                    }
                } else {
                    l.answered(sent, now);
                    expected.answered(sent, now);
                }
                under_way.pop_front();
                longest_pause = std::max(longest_pause, sent - last);
                last = sent;
                REQUIRE(end_of(l) <= after_start(expected.end()));
                // What it does not remember costs no more than T/16, or the time between two answered requests.
                REQUIRE(end_of(l) >= after_start(expected.end() - std::max<duration>(T / 16, longest_pause)));
            } else {
                under_way.push_back(now);
            }
        }
    }
}

}  // namespace zkasio::test::lease_times
