#pragma once

#include <pthread.h>

#include <cstdint>
#include <mutex>

// Outside of all namespaces, for the name is the same in all copies of zkasio that a process may have: `zkasio`,
// `boost_zkasio`, and those that plugins contain. All share what the linker finds first, as they share the C library.
extern "C" {

struct zkasio_c_library_1 {
    /// Fact 28: the library has process-wide statics (xid, log buffer, address text), so handles take turns.
    std::mutex mutex;
    /// Of request_numbers.cpp: requests that may follow without another look at their numbers.
    std::int64_t numbers_left = 0;
    /// How many may follow a look that fails. 0: there was no request yet.
    std::int64_t until_next_look = 0;
};

/// A child process gets an unlocked mutex, even if another thread of its parent has locked the mutex during fork().
[[gnu::visibility("default")]] inline zkasio_c_library_1& zkasio_the_c_library_1() {
    static zkasio_c_library_1 one;
    static const int registered = ::pthread_atfork([] { one.mutex.lock(); }, [] { one.mutex.unlock(); },
                                                   [] { one.mutex.unlock(); });
    static_cast<void>(registered);
    return one;
}

}
