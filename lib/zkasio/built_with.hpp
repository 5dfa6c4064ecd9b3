#pragma once

#include <zkasio/asio_version.hpp>
#include <zkasio/export.hpp>

// Definitions with which Asio or the standard library lay out their classes in another way. The program and the library
// must agree, or the first use of an io_context ends in a crash. So each file of a program refers to the settings that
// it was compiled with, by name, and the library defines those that it was built with: the linker names the difference.
#if defined(_GLIBCXX_DEBUG)
#define ZKASIO_SETTING_1 with_GLIBCXX_DEBUG
#else
#define ZKASIO_SETTING_1 without_GLIBCXX_DEBUG
#endif
#if defined(ASIO_ENABLE_HANDLER_TRACKING)
#define ZKASIO_SETTING_2 with_handler_tracking
#else
#define ZKASIO_SETTING_2 without_handler_tracking
#endif
#if defined(ASIO_HAS_IO_URING_AS_DEFAULT)
#define ZKASIO_SETTING_3 with_reactor_io_uring
#elif defined(ASIO_HAS_EPOLL)
#define ZKASIO_SETTING_3 with_reactor_epoll
#else
#define ZKASIO_SETTING_3 with_reactor_without_epoll
#endif
#if defined(ASIO_HAS_THREADS)
#define ZKASIO_SETTING_4 with_threads
#else
#define ZKASIO_SETTING_4 without_threads
#endif

namespace zkasio::library_was_not_built {

ZKASIO_EXPORT extern const char ZKASIO_SETTING_1, ZKASIO_SETTING_2, ZKASIO_SETTING_3, ZKASIO_SETTING_4;

namespace {
[[gnu::used]] const char* const required[] = {&ZKASIO_SETTING_1, &ZKASIO_SETTING_2, &ZKASIO_SETTING_3,
                                              &ZKASIO_SETTING_4};
}

}  // namespace zkasio::library_was_not_built
