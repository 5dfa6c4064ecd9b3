#pragma once

#include "unit/support/counting_new.hpp"

#ifdef ZKASIO_TEST_COUNTS_NEW

#include <limits>

namespace zkasio::test {

/// Calls `f` with memory for so many requests: the next one and all later ones are refused. False: one was refused,
/// whatever `f` has thrown.
template <class F>
bool with_memory_for(long requests, F f) {
    const long first_refused = news + requests;
    refused_from = first_refused;
    try {
        f();
    } catch (...) {
    }
    refused_from = std::numeric_limits<long>::max();
    return news <= first_refused;
}

}  // namespace zkasio::test

#endif
