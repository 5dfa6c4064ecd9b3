# zkasio::asio: Boost.Asio, headers only, with Boost.System's error codes.
#
# Sets ZkasioAsio_DEFINITIONS to what every file that uses it has to be compiled with.

# Whether Boost.Asio allocates with aligned_alloc depends on what was included before it, and memory travels between
# translation units: decide it for all of them.
set(ZkasioAsio_DEFINITIONS BOOST_ASIO_DISABLE_STD_ALIGNED_ALLOC BOOST_ERROR_CODE_HEADER_ONLY)
set(ZkasioAsio_CLANG_DEFINITIONS "")
# g++ before 14 inlines Boost.Asio's operator new for coroutine frames, but not the operator delete beside it, and warns
# of the mismatch in whatever coroutine it happens to be: in programs that use zkasio, too.
set(ZkasioAsio_OPTIONS "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
    set(ZkasioAsio_OPTIONS -Wno-mismatched-new-delete)
endif()

find_path(ZkasioAsio_INCLUDE_DIR boost/asio/version.hpp)
if(NOT TARGET zkasio::asio)
    add_library(zkasio::asio INTERFACE IMPORTED)
    if(ZkasioAsio_INCLUDE_DIR)
        set_property(TARGET zkasio::asio PROPERTY INTERFACE_INCLUDE_DIRECTORIES ${ZkasioAsio_INCLUDE_DIR})
    endif()
    set_property(TARGET zkasio::asio PROPERTY INTERFACE_COMPILE_DEFINITIONS ${ZkasioAsio_DEFINITIONS})
    set_property(TARGET zkasio::asio PROPERTY INTERFACE_COMPILE_OPTIONS ${ZkasioAsio_OPTIONS})
endif()

set(ZkasioAsio_VERSION "")
if(EXISTS "${ZkasioAsio_INCLUDE_DIR}/boost/asio/version.hpp")
    file(STRINGS "${ZkasioAsio_INCLUDE_DIR}/boost/asio/version.hpp" zkasio_asio_version
        REGEX "^#define BOOST_ASIO_VERSION [0-9]+")
    if(zkasio_asio_version MATCHES "ASIO_VERSION ([0-9]+)([0-9][0-9][0-9])([0-9][0-9])")
        math(EXPR zkasio_asio_minor "${CMAKE_MATCH_2}")
        math(EXPR zkasio_asio_patch "${CMAKE_MATCH_3}")
        set(ZkasioAsio_VERSION ${CMAKE_MATCH_1}.${zkasio_asio_minor}.${zkasio_asio_patch})
    endif()
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ZkasioAsio REQUIRED_VARS ZkasioAsio_INCLUDE_DIR VERSION_VAR ZkasioAsio_VERSION
    REASON_FAILURE_MESSAGE
    "Boost 1.81 or later is needed (Debian 12: apt install libboost1.81-dev, later ones: libboost-dev)"
)
mark_as_advanced(ZkasioAsio_INCLUDE_DIR)
