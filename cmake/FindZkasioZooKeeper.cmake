# zkasio::zookeeper_st: the single-threaded ZooKeeper C client. Never the multi-threaded one: both export the same
# names.
find_path(ZkasioZooKeeper_INCLUDE_DIR zookeeper/zookeeper.h)
find_library(ZkasioZooKeeper_LIBRARY zookeeper_st)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ZkasioZooKeeper REQUIRED_VARS ZkasioZooKeeper_LIBRARY ZkasioZooKeeper_INCLUDE_DIR
    REASON_FAILURE_MESSAGE "the ZooKeeper C client 3.8 or later is needed (Debian: apt install libzookeeper-st-dev)")
if(ZkasioZooKeeper_FOUND AND NOT TARGET zkasio::zookeeper_st)
    add_library(zkasio::zookeeper_st UNKNOWN IMPORTED)
    set_target_properties(zkasio::zookeeper_st PROPERTIES
        IMPORTED_LOCATION "${ZkasioZooKeeper_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${ZkasioZooKeeper_INCLUDE_DIR}")
endif()
mark_as_advanced(ZkasioZooKeeper_INCLUDE_DIR ZkasioZooKeeper_LIBRARY)
