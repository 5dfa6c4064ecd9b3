# zkasio::zookeeper_st: the single-threaded ZooKeeper C client. Never the multi-threaded one: both export the same
# names.
#
# It is a target of vcpkg's (zookeeper, without its feature `sync`), or the library of Debian's libzookeeper-st-dev.
# Sets ZkasioZooKeeper_LINK_FLAGS to what links it without CMake.
if(NOT TARGET unofficial::zookeeper::zookeeper)
    find_package(unofficial-zookeeper CONFIG QUIET)
endif()
include(FindPackageHandleStandardArgs)
if(TARGET unofficial::zookeeper::zookeeper)
    get_target_property(zkasio_zookeeper_links unofficial::zookeeper::zookeeper INTERFACE_LINK_LIBRARIES)
    set(ZkasioZooKeeper_SINGLE_THREADED ON)
    if(zkasio_zookeeper_links MATCHES "Threads::Threads")
        set(ZkasioZooKeeper_SINGLE_THREADED OFF)
    endif()
    find_package_handle_standard_args(ZkasioZooKeeper REQUIRED_VARS ZkasioZooKeeper_SINGLE_THREADED
        REASON_FAILURE_MESSAGE "vcpkg's zookeeper has threads of its own here: install it without its feature `sync`")
    set(ZkasioZooKeeper_LINK_FLAGS "-lzookeeper -lhashtable -lrt -lm")
    if(ZkasioZooKeeper_FOUND AND NOT TARGET zkasio::zookeeper_st)
        add_library(zkasio::zookeeper_st INTERFACE IMPORTED)
        set_property(TARGET zkasio::zookeeper_st PROPERTY INTERFACE_LINK_LIBRARIES unofficial::zookeeper::zookeeper)
    endif()
    return()
endif()

find_path(ZkasioZooKeeper_INCLUDE_DIR zookeeper/zookeeper.h)
find_library(ZkasioZooKeeper_LIBRARY zookeeper_st)
find_package_handle_standard_args(ZkasioZooKeeper REQUIRED_VARS ZkasioZooKeeper_LIBRARY ZkasioZooKeeper_INCLUDE_DIR
    REASON_FAILURE_MESSAGE "the ZooKeeper C client 3.8 or later is needed (Debian: apt install libzookeeper-st-dev)")
if(ZkasioZooKeeper_FOUND AND NOT TARGET zkasio::zookeeper_st)
    add_library(zkasio::zookeeper_st UNKNOWN IMPORTED)
    set_target_properties(zkasio::zookeeper_st PROPERTIES
        IMPORTED_LOCATION "${ZkasioZooKeeper_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${ZkasioZooKeeper_INCLUDE_DIR}")
endif()
if(ZkasioZooKeeper_FOUND)
    set(ZkasioZooKeeper_LINK_FLAGS "-lzookeeper_st")
    cmake_path(GET ZkasioZooKeeper_LIBRARY PARENT_PATH zkasio_zookeeper_dir)
    if(NOT zkasio_zookeeper_dir IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
        string(PREPEND ZkasioZooKeeper_LINK_FLAGS "-L${zkasio_zookeeper_dir} ")
    endif()
endif()
mark_as_advanced(ZkasioZooKeeper_INCLUDE_DIR ZkasioZooKeeper_LIBRARY)
