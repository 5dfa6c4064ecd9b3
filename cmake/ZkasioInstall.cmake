# What `cmake --install` installs: the library, its public headers, the CMake package, the pkg-config file.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS zkasio EXPORT zkasio-targets FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(zkasio_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/zkasio)
install(EXPORT zkasio-targets NAMESPACE zkasio:: DESTINATION ${zkasio_package_dir})
configure_package_config_file(cmake/zkasio-config.cmake.in zkasio-config.cmake
    INSTALL_DESTINATION ${zkasio_package_dir})
write_basic_package_version_file(zkasio-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/zkasio-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/zkasio-config-version.cmake
    cmake/FindZkasioAsio.cmake cmake/FindZkasioZooKeeper.cmake
    DESTINATION ${zkasio_package_dir})

# Components have targets files of their own, for find_package(zkasio) needs none of their libraries.
if(ZKASIO_JSON)
    install(TARGETS zkasio_json EXPORT zkasio-json-targets FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    install(EXPORT zkasio-json-targets NAMESPACE zkasio:: DESTINATION ${zkasio_package_dir})
    install(TARGETS zkasio_discovery EXPORT zkasio-discovery-targets
        FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    install(EXPORT zkasio-discovery-targets NAMESPACE zkasio:: DESTINATION ${zkasio_package_dir})
endif()

if(ZKASIO_PROMETHEUS)
    install(TARGETS zkasio_prometheus EXPORT zkasio-prometheus-targets
        FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    install(EXPORT zkasio-prometheus-targets NAMESPACE zkasio:: DESTINATION ${zkasio_package_dir})
endif()

if(ZKASIO_TESTING)
    install(TARGETS zkasio_testing EXPORT zkasio-testing-targets
        FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    install(EXPORT zkasio-testing-targets NAMESPACE zkasio:: DESTINATION ${zkasio_package_dir})
endif()

if(ZKASIO_TLS)
    install(TARGETS zkasio_tls EXPORT zkasio-tls-targets FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    install(EXPORT zkasio-tls-targets NAMESPACE zkasio:: DESTINATION ${zkasio_package_dir})
endif()

# The pkg-config file finds the prefix from where it lies itself, so the installed tree can be moved.
set(zkasio_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(zkasio_pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
    file(RELATIVE_PATH zkasio_pc_prefix "/${zkasio_pc_dir}" "/")
    set(zkasio_pc_prefix "\${pcfiledir}/${zkasio_pc_prefix}")
    string(REGEX REPLACE "/$" "" zkasio_pc_prefix "${zkasio_pc_prefix}")
endif()
foreach(dir LIBDIR INCLUDEDIR)
    set(zkasio_pc_${dir} "${CMAKE_INSTALL_${dir}}")
    if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
        string(PREPEND zkasio_pc_${dir} "\${prefix}/")
    endif()
endforeach()

# Neither Asio nor the C client has a pkg-config file on Debian 12: they are spelled out, with their directories unless
# compilers look there anyway.
set(zkasio_pc_cflags "")
set(zkasio_pc_definitions ${ZkasioAsio_DEFINITIONS} ${ZkasioAsio_CLANG_DEFINITIONS})
list(REMOVE_DUPLICATES zkasio_pc_definitions)
foreach(definition ${zkasio_pc_definitions})
    string(APPEND zkasio_pc_cflags " -D${definition}")
endforeach()
if(IS_DIRECTORY "${ZkasioAsio_INCLUDE_DIR}"
        AND NOT ZkasioAsio_INCLUDE_DIR IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    string(APPEND zkasio_pc_cflags " -I${ZkasioAsio_INCLUDE_DIR}")
endif()
set(zkasio_pc_libs_private "-lzookeeper_st")
cmake_path(GET ZkasioZooKeeper_LIBRARY PARENT_PATH zkasio_pc_dir_of_client)
if(NOT zkasio_pc_dir_of_client IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
    string(PREPEND zkasio_pc_libs_private "-L${zkasio_pc_dir_of_client} ")
endif()
# What a static library needs is needed by whoever links it, and there is no other one to link: not only with --static.
get_target_property(zkasio_type zkasio TYPE)
set(zkasio_pc_libs "")
if(zkasio_type STREQUAL "STATIC_LIBRARY")
    set(zkasio_pc_libs " ${zkasio_pc_libs_private}")
    set(zkasio_pc_libs_private "")
endif()
configure_file(cmake/zkasio.pc.in zkasio.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/zkasio.pc DESTINATION ${zkasio_pc_dir})
if(ZKASIO_JSON)
    configure_file(cmake/zkasio-discovery.pc.in zkasio-discovery.pc @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/zkasio-discovery.pc DESTINATION ${zkasio_pc_dir})
endif()
