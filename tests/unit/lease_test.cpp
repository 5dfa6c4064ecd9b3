#include "support/catch.hpp"

#include <zkasio/detail/lease.hpp>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using zkasio::detail::half_tick;
using zkasio::detail::lease;
using namespace std::chrono_literals;

namespace {

using duration = lease::duration;
using time_point = lease::time_point;

constexpr duration T = 12s;        // divides well
constexpr duration half = T / 4;   // of a tick, at most
constexpr duration late = T / 64;  // what a leader's ping may be late
constexpr duration gap = half + late;
constexpr duration drift = T / 1000;
constexpr duration rtt = 10ms;
constexpr time_point start{10000s};

// Readable when a check fails.
duration after_start(time_point t) { return t - start; }
duration end_of(const lease& l) { return after_start(l.end()); }

// The lease that begins when the leader has heard of us at `heard`.
time_point from(time_point heard) { return heard + T - drift; }

lease connected(time_point at = start) {
    lease l;
    l.connected(at, T);
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

TEST_CASE("lease: a first write of a session that was idle is worth 0.6 T", "[lease]") {
    for (int phase = 0; phase < 100; ++phase) {
        lease l = long_connected();
        const time_point sent = start + phase * (T / 8) / 100;
        for (time_point t = start - T; t <= sent; t += T / 8) l.answered(t, t + rtt);
        l.write_answered(sent, sent + rtt);
        REQUIRE(l.end() >= sent + T * 6 / 10);
    }
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

TEST_CASE("lease: random histories against the rule itself", "[lease]") {
    // Answers come in order, T/8 after their requests at the latest.
    const bool with_reconnects = GENERATE(false, true);
    std::mt19937_64 random(with_reconnects);
    const auto up_to = [&](duration d) {
        return duration(static_cast<duration::rep>(random() % static_cast<std::uint64_t>(d.count() + 1)));
    };
    for (int round = 0; round < 600; ++round) {
        const duration pace = T / (1 + static_cast<int>(random() % 64));
        const unsigned writes = 1 + static_cast<unsigned>(random() % 100);
        time_point now = start;
        lease l = connected(now);
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
                l.connected(now, T);
                expected.connected(now);
            } else if (now >= due || (!under_way.empty() && what < 50)) {
                const time_point sent = under_way.front();
                if (random() % 100 < writes) {
                    l.write_answered(sent, now);
                    expected.write_answered(sent, now);
                    REQUIRE(after_start(l.heartbeat_due()) == after_start(sent + T / 4));
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

// ------------------------------------------------------------------------------------------------- the ensemble
//
// A leader, the follower that the client is connected to, and the client, in virtual time: what the rule is derived
// from, packet by packet. Whenever the lease grows, it must be covered by what the leader has been told by then.

namespace {

/// Nothing overtakes in it. What would arrive after the cut is lost.
struct wire {
    duration delay{}, jitter{};
    time_point cut = time_point::max(), last{};
};

class ensemble {
public:
    explicit ensemble(std::uint64_t seed) : random(seed) {}

    std::mt19937_64 random;
    duration half_tick = half;
    duration ping_late{}, ping_later{};  // of the leader's timer: at most, and always
    wire to_follower, to_leader, to_server, to_client;
    duration known_half_tick{};  // what the lease is told
    bool reads_when_idle = true;

    time_point now = start;
    lease l;
    time_point expires{};  // as the leader has it: its clock may run a little faster
    duration granted = T;
    bool expired = false;
    std::optional<time_point> held_since;
    duration least = duration::max();  // left of the lease while held, whenever it grew, or had to
    bool lost = false;
    std::string wrong;

    duration up_to(duration d) {
        return duration(static_cast<duration::rep>(random() % static_cast<std::uint64_t>(d.count() + 1)));
    }

    void at(time_point t, std::function<void()> what) { events_.push({std::max(t, now), order_++, std::move(what)}); }

    void run(time_point until) {
        while (!events_.empty() && events_.top().at <= until && wrong.empty()) {
            const event e = events_.top();
            events_.pop();
            now = e.at;
            e.what();
        }
    }

    void open() {
        expires = expiry_from(now + to_server.delay + to_leader.delay);
        l.connected(now, granted, known_half_tick);
        last_sent_ = now;
        at(now + up_to(half_tick), [this] { ping(); });
        at(now + T / 8, [this] { idle(); });
    }

    /// The client goes on with its session at another follower, which grants so much. What was under way is lost.
    void reconnect(duration timeout) {
        if (now < stalled_until_ || shaking_hands_) return;
        shaking_hands_ = true;
        noted_ = false;
        unanswered_.clear();
        const int mine = ++connection_;
        const time_point sent = last_sent_ = now;
        cross(to_server, [=, this] {
            cross(to_leader, [=, this] {
                expired = expired || now >= expires;
                if (expired) return;
                granted = timeout;
                expires = expiry_from(now);
                cross(to_follower, [=, this] { cross(to_client, [=, this] { reconnected(mine, sent); }); });
            });
        });
    }

    void send(bool write, std::function<void()> then = {}) {
        if (now < stalled_until_ || shaking_hands_) return;
        last_sent_ = now;
        const request r{write, connection_, now, std::move(then)};
        cross(to_server, [this, r] { received(r); });
    }

    /// The client's loop does not run: nothing is sent, and answers wait.
    void stall(duration d) { stalled_until_ = std::max(stalled_until_, now + d); }
    /// The link between client and server is silent, and then everything arrives.
    void silence(duration d) {
        for (wire* w : {&to_server, &to_client}) w->last = std::max(w->last, now + d);
    }

    /// Heartbeats as the core sends them.
    void hold() {
        held_since = now;
        least = std::min(least, l.end() - now);
        beat();
    }

    std::function<void(int)> on_heartbeat = [](int) {};

private:
    struct request {
        bool write;
        int connection;
        time_point sent;
        std::function<void()> then;
    };
    struct event {
        time_point at;
        std::uint64_t order;
        std::function<void()> what;
        bool operator<(const event& other) const { return std::tie(other.at, other.order) < std::tie(at, order); }
    };

    void cross(wire& w, std::function<void()> arrive) {
        const time_point arrival = std::max(w.last, now + w.delay + up_to(w.jitter));
        w.last = arrival;
        if (arrival < w.cut) at(arrival, std::move(arrive));
    }

    time_point expiry_from(time_point heard) const { return heard + granted - granted / 2000; }

    void reconnected(int connection, time_point sent) {
        if (now < stalled_until_) return at(stalled_until_, [=, this] { reconnected(connection, sent); });
        shaking_hands_ = false;
        l.connected(sent, granted, known_half_tick);
        check_end();
        if (held_since) beat();
    }

    void check_end() {
        if (l.end() > expires)
            wrong = "at " + std::to_string(after_start(now).count()) + " the lease ends " +
                    std::to_string((l.end() - expires).count()) + " ns too late";
    }

    void ping() {
        cross(to_follower, [this] {
            const bool noted = std::exchange(noted_, false);
            cross(to_leader, [this, noted, on = connection_] {
                if (noted && !expired && on == connection_) expires = expiry_from(now);
            });
        });
        at(now + half_tick + ping_later + up_to(ping_late), [this] { ping(); });
    }

    void received(const request& r) {
        if (r.connection != connection_) return;
        noted_ = true;
        unanswered_.push_back({r, !r.write});
        if (r.write)
            cross(to_leader, [this, on = r.connection] {
                expired = expired || now >= expires;
                if (expired || on != connection_) return;
                cross(to_follower, [this, on] {
                    if (on != connection_) return;
                    std::find_if(unanswered_.begin(), unanswered_.end(), [](const auto& u) {
                        return !u.second;
                    })->second = true;
                    answer();
                });
            });
        answer();
    }

    // In the order of the requests.
    void answer() {
        for (; !unanswered_.empty() && unanswered_.front().second; unanswered_.pop_front())
            cross(to_client, [this, r = unanswered_.front().first] { answered(r); });
    }

    void answered(const request& r) {
        if (r.connection != connection_) return;
        if (now < stalled_until_) return at(stalled_until_, [this, r] { answered(r); });
        if (held_since) {
            least = std::min(least, l.end() - now);
            lost = lost || l.end() <= now;
        }
        const time_point before = l.end();
        if (r.write)
            l.write_answered(r.sent, now);
        else
            l.answered(r.sent, now);
        if (l.end() > before) check_end();
        if (r.then) r.then();
    }

    void idle() {
        if (!reads_when_idle) return;
        if (now >= last_sent_ + l.read_interval()) send(false);
        at(std::max({stalled_until_, last_sent_ + l.read_interval(), now + 1ms}), [this] { idle(); });
    }

    void beat() {
        if (now < stalled_until_) return at(stalled_until_, [this] { beat(); });
        if (now < l.heartbeat_due()) return at(l.heartbeat_due(), [this] { beat(); });
        on_heartbeat(beats_++);
        send(true, [this] { beat(); });
    }

    std::priority_queue<event> events_;
    std::uint64_t order_ = 0;
    bool noted_ = false;  // by the follower, since its last report
    int connection_ = 0;
    bool shaking_hands_ = false;
    std::deque<std::pair<request, bool>> unanswered_;  // and whether they could be
    time_point last_sent_{}, stalled_until_{};
    int beats_ = 0;
};

}  // namespace

#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr long histories = 3000;
#else
constexpr long histories = 300;  // of the same; they take up to 50 times as long
#endif

TEST_CASE("lease: an ensemble in which everything is random, and what the leader has been told", "[lease]") {
    const bool with_reconnects = GENERATE(false, true);
    long grown = 0;
    for (long seed = 1; seed <= histories; ++seed) {
        ensemble e(static_cast<std::uint64_t>(seed));
        const auto chance = [&](unsigned percent) { return e.random() % 100 < percent; };
        e.half_tick = half / (chance(50) ? 1 : 1 + static_cast<int>(e.random() % 9));
        if (chance(50)) e.known_half_tick = e.half_tick;
        if (chance(10)) e.known_half_tick = e.half_tick = half + e.up_to(half);  // a custom minSessionTimeout
        // Two ticks at least, unless the client knows better.
        const duration shortest =
            with_reconnects ? std::max<duration>(e.known_half_tick > 0s ? 0s : 4 * e.half_tick, T / 4) : T;
        const duration latest = shortest / 64;
        e.ping_late = e.up_to(latest / 2);
        e.to_follower = {e.up_to(T / 20), e.up_to(latest / 2)};
        e.to_leader = {e.up_to(T / 20), e.up_to(T / 50)};
        const duration away =
            chance(50) ? T / 10 : T / 2000;  // from far away, the round trip hides what is too short by less
        e.to_server = {e.up_to(away), e.up_to(chance(50) ? away : away / 20)};
        e.to_client = {e.up_to(away), e.up_to(chance(50) ? away : away / 20)};
        if (chance(50)) {  // each ping as late as it may be
            e.ping_late = e.to_follower.jitter = {};
            e.ping_later = latest;
        }
        e.reads_when_idle = chance(90);
        const time_point end = start + 6 * T;
        if (chance(70)) {
            const time_point cut = start + T / 2 + e.up_to(4 * T);
            if (chance(67)) e.to_follower.cut = cut;
            if (chance(67)) e.to_leader.cut = cut;
        }
        e.at(start, [&] { e.open(); });
        const int requests = static_cast<int>(e.random() % 100);
        for (int i = 0; i < requests; ++i) {
            const bool write = chance(50);
            e.at(start + 1ms + e.up_to(6 * T), [&e, write] { e.send(write); });
        }
        if (chance(70)) e.at(start + 1ms + e.up_to(2 * T), [&] { e.hold(); });
        for (int reconnects = with_reconnects ? 1 + static_cast<int>(e.random() % 3) : 0; reconnects > 0;
             --reconnects) {
            const unsigned part =
                static_cast<unsigned>(e.random() % 5);  // never more than before: the C library asks for what it has
            e.at(start + 1ms + e.up_to(5 * T),
                 [&e, shortest, part] { e.reconnect(shortest + (e.granted - shortest) * part / 4); });
        }
        for (int stalls = chance(50) ? static_cast<int>(e.random() % 5) : 0; stalls > 0; --stalls) {
            const duration d = e.up_to(T / 2);
            const bool network = chance(50);
            e.at(start + e.up_to(6 * T), [&e, d, network] { network ? e.silence(d) : e.stall(d); });
        }
        e.run(end);
        INFO("seed " << seed);
        REQUIRE(e.wrong == "");
        grown += e.l.end() > from(start);
    }
    CHECK(grown > histories * 2 / 3);  // the rule does give leases
}

TEST_CASE("lease: with followers whose ticks are at their longest, every phase of reads, pings and the first write",
          "[lease]") {
    const auto round_trip = GENERATE(as<duration>{}, T / 1000, T / 20, T * 15 / 100);
    for (int phase = 0; phase < 400; ++phase) {
        ensemble e(static_cast<std::uint64_t>(phase));
        e.to_server = e.to_client = {round_trip / 2};
        e.to_follower = e.to_leader = {T / 2000};
        e.at(start, [&] { e.open(); });
        // A lock after an idle time, held from its answer on.
        const time_point acquire = start + 2 * T + phase * T / 400;
        e.at(acquire, [&] { e.send(true, [&] { e.hold(); }); });
        e.run(start + 6 * T);
        REQUIRE(e.wrong == "");
        REQUIRE(e.held_since);
        REQUIRE_FALSE(e.lost);
        REQUIRE(e.least > T / 20);
    }
}

TEST_CASE("lease: 0.3 T of silence during the first heartbeat", "[lease]") {
    const bool network = GENERATE(false, true);  // or the loop
    for (int phase = 0; phase < 400; ++phase) {
        ensemble e(static_cast<std::uint64_t>(phase));
        e.to_server = e.to_client = {T / 1000};
        e.to_follower = e.to_leader = {T / 2000};
        e.at(start, [&] { e.open(); });
        e.at(start + 2 * T + phase * T / 400, [&] { e.send(true, [&] { e.hold(); }); });
        e.on_heartbeat = [&](int beat) {
            if (beat != 0) return;
            if (network)
                e.silence(T * 3 / 10);
            else
                e.at(e.now + T / 2000, [&] { e.stall(T * 3 / 10); });
        };
        e.run(start + 6 * T);
        REQUIRE(e.wrong == "");
        REQUIRE(e.held_since);
        REQUIRE_FALSE(e.lost);
        REQUIRE(e.least > T / 25);
    }
}

TEST_CASE("lease: a tick that is known makes more of a slow link", "[lease]") {
    // T is ten ticks here. Round trips of a quarter of T.
    const bool known = GENERATE(false, true);
    bool lost = false;
    for (int phase = 0; phase < 400; ++phase) {
        ensemble e(static_cast<std::uint64_t>(phase));
        e.half_tick = T / 20;
        if (known) e.known_half_tick = e.half_tick;
        e.to_server = e.to_client = {T / 8};
        e.to_follower = e.to_leader = {T / 2000};
        e.at(start, [&] { e.open(); });
        e.at(start + 2 * T + phase * T / 400, [&] { e.send(true, [&] { e.hold(); }); });
        e.run(start + 6 * T);
        REQUIRE(e.wrong == "");
        REQUIRE(e.held_since);
        lost = lost || e.lost;
    }
    CHECK(lost == !known);
}
