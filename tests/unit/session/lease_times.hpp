#pragma once

#include <zkasio/detail/session/lease.hpp>

#include <chrono>

// Short names, of these tests only.
namespace zkasio::test::lease_times {

using namespace std::chrono_literals;

using duration = detail::lease::duration;
using time_point = detail::lease::time_point;

inline constexpr duration T = 12s;        // divides well
inline constexpr duration half = T / 4;   // of a tick, at most
inline constexpr duration late = T / 64;  // what a leader's ping may be late
inline constexpr duration gap = half + late;
inline constexpr duration drift = T / 1000;
inline constexpr duration rtt = 10ms;
inline constexpr time_point start{10000s};

/// Readable when a check fails.
inline duration after_start(time_point t) { return t - start; }
inline duration end_of(const detail::lease& l) { return after_start(l.end()); }

/// The lease that begins when the leader has heard of us at `heard`.
inline time_point from(time_point heard) { return heard + T - drift; }

}  // namespace zkasio::test::lease_times
