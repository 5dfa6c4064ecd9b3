#pragma once

// To be included before any header of Boost.Asio: a Boost.Asio that cannot work is then reported in words instead of in
// pages of errors. Everything that depends on the version of Boost.Asio is in this file and nowhere else.

#if !__has_include(<boost/asio/version.hpp>)
#error "boost_zkasio needs Boost 1.81 or later (Debian 12: libboost1.81-dev, later ones: libboost-dev), not found."
#endif

#include <boost/asio/detail/config.hpp>
#include <boost/asio/version.hpp>

#if BOOST_ASIO_VERSION < 102600
#error "boost_zkasio needs Boost 1.81 or later: this one is older, see BOOST_VERSION in <boost/version.hpp>."
#endif

#if defined(BOOST_ZKASIO_BUILT_WITH_ASIO) && BOOST_ZKASIO_BUILT_WITH_ASIO != BOOST_ASIO_VERSION
#error "The installed boost_zkasio was built with another Boost.Asio than this one, see BOOST_ASIO_VERSION in \
<boost/asio/version.hpp> and BOOST_ZKASIO_BUILT_WITH_ASIO on the command line. Compile with the same Boost, or build \
boost_zkasio with this one."
#endif

#if !defined(BOOST_ASIO_DISABLE_STD_ALIGNED_ALLOC)
#error "Every file that uses boost_zkasio needs -DBOOST_ASIO_DISABLE_STD_ALIGNED_ALLOC, as the library has it: \
Boost.Asio frees in one what it has allocated in another. The CMake target boost_zkasio::boost_zkasio and the \
pkg-config file boost_zkasio define it."
#endif

#if !defined(BOOST_ASIO_HAS_CO_AWAIT) || !defined(BOOST_ASIO_HAS_STD_COROUTINE)
#error "Boost.Asio finds no coroutines: compile as C++20."
#endif

#include <boost_zkasio/built_with.hpp>
