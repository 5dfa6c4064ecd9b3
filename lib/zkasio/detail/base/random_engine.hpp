#pragma once

#include <random>

namespace zkasio::detail {

/// The source of random ids and of the library's own numbers: one engine for each thread, seeded by the system. A
/// simulation seeds the engine again, so that the same seed gives the same names, and with them the same order wherever
/// names decide.
std::mt19937_64& random_engine();

/// The source of pauses and of the order of servers, which may depend on the time: another engine, so that these do not
/// change the names that a simulation gets.
std::mt19937_64& jitter_engine();

/// [0, 1), for the length of a pause.
double jitter();

}  // namespace zkasio::detail
