#pragma once

// How often the program has asked for memory, and has given it back. Not under sanitizers: they have an operator new of
// their own, which finds more than this one counts.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ZKASIO_TEST_COUNTS_NEW

#include <atomic>

namespace zkasio::test {

extern std::atomic<long> news, deletes;

}  // namespace zkasio::test

#endif
