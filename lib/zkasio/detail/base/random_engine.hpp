#pragma once

#include <random>

namespace zkasio::detail {

/// What random ids and the library's own numbers are drawn from: one for each thread, seeded by the system. A
/// simulation seeds it anew, so that the same seed gives the same names, and with them the same order wherever names
/// decide.
std::mt19937_64& random_engine();

/// What pauses and the order of servers are drawn from, which may depend on the time: another engine, so that it does
/// not change the names that a simulation gets.
std::mt19937_64& jitter_engine();

/// [0, 1), for the length of a pause.
double jitter();

}  // namespace zkasio::detail
