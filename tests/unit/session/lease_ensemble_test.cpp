// The rule of the lease, against an ensemble in virtual time.

#include "support/catch.hpp"
#include "unit/session/lease_ensemble.hpp"

#include <algorithm>
#include <cstdint>

namespace zkasio::test::lease_times {

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
        e.renewals = 4 - static_cast<int>(seed % 3);
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
    struct expectation {
        int renewals;
        duration round_trip, least;
    };
    const auto x = GENERATE(expectation{4, T / 1000, T * 30 / 100}, expectation{4, T / 20, T / 4},
                            expectation{4, T / 10, T / 6}, expectation{4, T * 15 / 100, T / 40},
                            expectation{3, T / 1000, T * 22 / 100}, expectation{3, T / 20, T / 6},
                            expectation{3, T * 15 / 100, T / 40}, expectation{2, T / 1000, T * 6 / 100},
                            expectation{2, T / 20, T / 100});
    for (int phase = 0; phase < 400; ++phase) {
        ensemble e(static_cast<std::uint64_t>(phase));
        e.renewals = x.renewals;
        e.to_server = e.to_client = {x.round_trip / 2};
        e.to_follower = e.to_leader = {T / 2000};
        e.at(start, [&] { e.open(); });
        // A lock after an idle time, held from its answer on.
        const time_point acquire = start + 2 * T + phase * T / 400;
        e.at(acquire, [&] { e.send(true, [&] { e.hold(); }); });
        e.run(start + 6 * T);
        REQUIRE(e.wrong == "");
        REQUIRE(e.held_since);
        REQUIRE_FALSE(e.lost);
        REQUIRE(e.least > x.least);
    }
}

TEST_CASE("lease: silence of nearly as much as is left when a heartbeat is sent loses nothing, and more does",
          "[lease]") {
    struct expectation {
        int renewals, left;  // per mille of T
    };
    const auto of = GENERATE(expectation{4, 359}, expectation{3, 276}, expectation{2, 109});
    const bool network = GENERATE(false, true);  // or the loop
    int lost = 0;
    for (int phase = 0; phase < 400; ++phase)
        for (const bool longer : {false, true}) {
            ensemble e(static_cast<std::uint64_t>(phase));
            e.renewals = of.renewals;
            e.to_server = e.to_client = {T / 1000};
            e.to_follower = e.to_leader = {T / 2000};
            const duration silent = longer ? T * 2 / 3 : T * of.left / 1000 - T / 100;
            e.at(start, [&] { e.open(); });
            e.at(start + 2 * T + phase * T / 400, [&] { e.send(true, [&] { e.hold(); }); });
            e.on_heartbeat = [&](int beat) {
                if (beat != 8) return;
                if (network)
                    e.silence(silent);
                else
                    e.at(e.now + T / 2000, [&] { e.stall(silent); });
            };
            e.run(start + 10 * T);
            REQUIRE(e.wrong == "");
            REQUIRE(e.held_since);
            if (!longer) REQUIRE_FALSE(e.lost);
            lost += e.lost;
        }
    CHECK(lost == 400);
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
        REQUIRE(e.least > T / 100);
    }
}

TEST_CASE("lease: a tick that is known makes more of a slow link", "[lease]") {
    // T is ten ticks here. Round trips of a fifth of T.
    const bool known = GENERATE(false, true);
    bool lost = false;
    for (int phase = 0; phase < 400; ++phase) {
        ensemble e(static_cast<std::uint64_t>(phase));
        e.half_tick = T / 20;
        if (known) e.known_half_tick = e.half_tick;
        e.to_server = e.to_client = {T / 10};
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

}  // namespace zkasio::test::lease_times
