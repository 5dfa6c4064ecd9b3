#pragma once

#include <random>

namespace zkasio::detail {

/// What random ids and the clients' own engines are drawn from: one for each thread, seeded by the system. A simulation seeds
/// it anew, so that the same seed gives the same names, and with them the same order wherever names decide.
std::mt19937_64& random_engine();

}  // namespace zkasio::detail
