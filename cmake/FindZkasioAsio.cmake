# zkasio::asio: standalone Asio, from a package's own CMake target (Conan, vcpkg) or as a header (Debian: libasio-dev).
if(NOT TARGET zkasio::asio)
    find_package(asio CONFIG QUIET)
    add_library(zkasio::asio INTERFACE IMPORTED)
    if(TARGET asio::asio)
        set_property(TARGET zkasio::asio PROPERTY INTERFACE_LINK_LIBRARIES asio::asio)
        set(ZkasioAsio_INCLUDE_DIR "by asio::asio")
    else()
        find_path(ZkasioAsio_INCLUDE_DIR asio.hpp)
        if(ZkasioAsio_INCLUDE_DIR)
            set_property(TARGET zkasio::asio PROPERTY INTERFACE_INCLUDE_DIRECTORIES ${ZkasioAsio_INCLUDE_DIR})
        endif()
    endif()
    # Whether Asio 1.22 allocates with aligned_alloc depends on what was included before it, and memory travels between
    # translation units: decide it for all of them.
    set_property(TARGET zkasio::asio PROPERTY INTERFACE_COMPILE_DEFINITIONS ASIO_STANDALONE ASIO_DISABLE_STD_ALIGNED_ALLOC)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ZkasioAsio REQUIRED_VARS ZkasioAsio_INCLUDE_DIR
    REASON_FAILURE_MESSAGE "standalone Asio 1.22 or later is needed (Debian: apt install libasio-dev)")
mark_as_advanced(ZkasioAsio_INCLUDE_DIR)
