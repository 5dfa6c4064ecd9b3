#pragma once

// How often the program has asked for memory, and has given it back. Not under sanitizers: they have an operator new of
// their own, which finds more than this one counts.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ZKASIO_TEST_COUNTS_NEW

#include <atomic>
#include <limits>

namespace zkasio::test {

extern std::atomic<long> news, deletes;
extern std::atomic<bool> no_memory;     // whoever asks for some is refused
extern std::atomic<long> refused_from;  // of `news`: this request for memory and all later ones are refused

// Calls `f` with memory for so many requests. False: one more was refused, whatever `f` has thrown.
template <class F>
bool with_memory_for(long requests, F f) {
    const long first = news + requests;
    refused_from = first;
    try {
        f();
    } catch (...) {
    }
    refused_from = std::numeric_limits<long>::max();
    return news <= first;
}

}  // namespace zkasio::test

#endif
