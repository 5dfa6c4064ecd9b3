# zkasio::asio: standalone Asio, from a package's own CMake target (Conan, vcpkg) or as a header (Debian: libasio-dev).
#
# Sets ZkasioAsio_DEFINITIONS to what every file that uses it has to be compiled with.

# Whether Asio 1.22 allocates with aligned_alloc depends on what was included before it, and memory travels between
# translation units: decide it for all of them.
set(ZkasioAsio_DEFINITIONS ASIO_STANDALONE ASIO_DISABLE_STD_ALIGNED_ALLOC)
# Asio 1.22 looks for the coroutines of clang in <experimental/coroutine> only. With other compilers, and later
# versions, it finds them by itself and defines the same.
set(ZkasioAsio_CLANG_DEFINITIONS ASIO_HAS_CO_AWAIT=1 ASIO_HAS_STD_COROUTINE=1)
# g++ before 14 inlines Asio's operator new for coroutine frames, but not the operator delete beside it, and warns of
# the mismatch in whatever coroutine it happens to be: in programs that use zkasio, too.
set(ZkasioAsio_OPTIONS "")
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    list(APPEND ZkasioAsio_DEFINITIONS ${ZkasioAsio_CLANG_DEFINITIONS})
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
    set(ZkasioAsio_OPTIONS -Wno-mismatched-new-delete)
endif()

if(NOT TARGET zkasio::asio)
    find_package(asio CONFIG QUIET)
    add_library(zkasio::asio INTERFACE IMPORTED)
    if(TARGET asio::asio)
        set_property(TARGET zkasio::asio PROPERTY INTERFACE_LINK_LIBRARIES asio::asio)
        set(ZkasioAsio_INCLUDE_DIR "by asio::asio")
    else()
        find_path(ZkasioAsio_INCLUDE_DIR asio/version.hpp)
        if(ZkasioAsio_INCLUDE_DIR)
            set_property(TARGET zkasio::asio PROPERTY INTERFACE_INCLUDE_DIRECTORIES ${ZkasioAsio_INCLUDE_DIR})
        endif()
    endif()
    set_property(TARGET zkasio::asio PROPERTY INTERFACE_COMPILE_DEFINITIONS ${ZkasioAsio_DEFINITIONS})
    set_property(TARGET zkasio::asio PROPERTY INTERFACE_COMPILE_OPTIONS ${ZkasioAsio_OPTIONS})
endif()

# vcpkg's package does not say which version it is.
set(ZkasioAsio_VERSION "${asio_VERSION}")
if(NOT ZkasioAsio_VERSION AND TARGET asio::asio)
    find_path(ZkasioAsio_HEADERS asio/version.hpp)
    mark_as_advanced(ZkasioAsio_HEADERS)
else()
    set(ZkasioAsio_HEADERS "${ZkasioAsio_INCLUDE_DIR}")
endif()
if(EXISTS "${ZkasioAsio_HEADERS}/asio/version.hpp")
    file(STRINGS "${ZkasioAsio_HEADERS}/asio/version.hpp" zkasio_asio_version REGEX "^#define ASIO_VERSION [0-9]+")
    if(zkasio_asio_version MATCHES "ASIO_VERSION ([0-9]+)([0-9][0-9][0-9])([0-9][0-9])")
        math(EXPR zkasio_asio_minor "${CMAKE_MATCH_2}")
        math(EXPR zkasio_asio_patch "${CMAKE_MATCH_3}")
        set(ZkasioAsio_VERSION ${CMAKE_MATCH_1}.${zkasio_asio_minor}.${zkasio_asio_patch})
    endif()
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ZkasioAsio REQUIRED_VARS ZkasioAsio_INCLUDE_DIR VERSION_VAR ZkasioAsio_VERSION
    REASON_FAILURE_MESSAGE "standalone Asio 1.22 or later is needed (Debian: apt install libasio-dev)")
mark_as_advanced(ZkasioAsio_INCLUDE_DIR)
