#pragma once

// To be included before any header of Asio: an Asio that cannot work is then reported in words instead of in pages of
// errors. Everything that depends on the version of Asio is in this file and nowhere else.

#if !__has_include(<asio/version.hpp>)
#error "zkasio needs standalone Asio 1.22 or later (Debian: libasio-dev). For Boost.Asio there is boost_zkasio."
#endif

#if defined(ASIO_ENABLE_BOOST) && !defined(ASIO_STANDALONE)
#error "zkasio needs Asio without Boost, whose error codes it cannot throw: define ASIO_STANDALONE."
#endif

#include <asio/detail/config.hpp>
#include <asio/version.hpp>

#if ASIO_VERSION < 102200
#error "zkasio needs standalone Asio 1.22 or later: this one is older, see ASIO_VERSION in <asio/version.hpp>."
#endif

#if defined(ZKASIO_BUILT_WITH_ASIO) && ZKASIO_BUILT_WITH_ASIO != ASIO_VERSION
#error "The installed zkasio was built with another Asio than this one, see ASIO_VERSION in <asio/version.hpp> and \
ZKASIO_BUILT_WITH_ASIO on the command line. Compile with the same Asio, or build zkasio with this one."
#endif

#if !defined(ASIO_DISABLE_STD_ALIGNED_ALLOC)
#error "Every file that uses zkasio needs -DASIO_DISABLE_STD_ALIGNED_ALLOC, as the library has it: Asio frees in one \
what it has allocated in another. The CMake target zkasio::zkasio and the pkg-config file zkasio define it."
#endif

#if !defined(ASIO_HAS_CO_AWAIT) || !defined(ASIO_HAS_STD_COROUTINE)
#error "Asio finds no coroutines: compile as C++20. With clang, Asio 1.22 also needs -DASIO_HAS_CO_AWAIT=1 and \
-DASIO_HAS_STD_COROUTINE=1; the CMake target zkasio::zkasio and the pkg-config file zkasio define them."
#endif

#include <zkasio/built_with.hpp>
