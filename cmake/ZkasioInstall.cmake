# What `cmake --install` installs: the library, its public headers, the CMake package, the pkg-config file.
#
# Components: `zkasio-runtime` (shared libraries that need nothing but the core's libraries), `zkasio-dev` (what
# programs are compiled with), and for each library that needs more, as prometheus: `zkasio-prometheus`,
# `zkasio-prometheus-dev`.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(zkasio_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/zkasio)

# zkasio_install(TARGET EXPORT RUNTIME_COMPONENT DEV_COMPONENT): a library, its headers, its targets file.
function(zkasio_install target export runtime dev)
    install(TARGETS ${target} EXPORT ${export}
        RUNTIME COMPONENT ${runtime} LIBRARY COMPONENT ${runtime} NAMELINK_COMPONENT ${dev} ARCHIVE COMPONENT ${dev}
        FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT ${dev})
    install(EXPORT ${export} NAMESPACE zkasio:: DESTINATION ${zkasio_package_dir} COMPONENT ${dev})
endfunction()

zkasio_install(zkasio zkasio-targets zkasio-runtime zkasio-dev)
configure_package_config_file(cmake/zkasio-config.cmake.in zkasio-config.cmake
    INSTALL_DESTINATION ${zkasio_package_dir})
write_basic_package_version_file(zkasio-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/zkasio-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/zkasio-config-version.cmake
    cmake/FindZkasioAsio.cmake cmake/FindZkasioGssapi.cmake cmake/FindZkasioZooKeeper.cmake
    DESTINATION ${zkasio_package_dir} COMPONENT zkasio-dev)

# What is optional has targets files of its own, for find_package(zkasio) needs none of their libraries.
if(ZKASIO_JSON)
    zkasio_install(zkasio_json zkasio-json-targets zkasio-runtime zkasio-dev)
    zkasio_install(zkasio_discovery zkasio-discovery-targets zkasio-runtime zkasio-dev)
endif()
if(ZKASIO_PROMETHEUS)
    zkasio_install(zkasio_prometheus zkasio-prometheus-targets zkasio-prometheus zkasio-prometheus-dev)
endif()
if(ZKASIO_TESTING)
    zkasio_install(zkasio_testing zkasio-testing-targets zkasio-testing zkasio-testing-dev)
endif()
if(ZKASIO_KERBEROS)
    zkasio_install(zkasio_kerberos zkasio-kerberos-targets zkasio-kerberos zkasio-kerberos-dev)
endif()
if(ZKASIO_SASL)
    zkasio_install(zkasio_sasl zkasio-sasl-targets zkasio-sasl zkasio-sasl-dev)
endif()
if(ZKASIO_TLS)
    zkasio_install(zkasio_tls zkasio-tls-targets zkasio-tls zkasio-tls-dev)
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
if(zkasio_asio_number)
    list(APPEND zkasio_pc_definitions ZKASIO_BUILT_WITH_ASIO=${zkasio_asio_number})
endif()
foreach(definition ${zkasio_pc_definitions})
    string(APPEND zkasio_pc_cflags " -D${definition}")
endforeach()
if(IS_DIRECTORY "${ZkasioAsio_INCLUDE_DIR}"
        AND NOT ZkasioAsio_INCLUDE_DIR IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    string(APPEND zkasio_pc_cflags " -I${ZkasioAsio_INCLUDE_DIR}")
endif()
# What a static library needs is needed by whoever links it, and there is no other one to link: not only with --static,
# so it is no Libs.private. A shared one brings it along.
get_target_property(zkasio_type zkasio TYPE)
set(zkasio_pc_libs "")
if(zkasio_type STREQUAL "STATIC_LIBRARY")
    set(zkasio_pc_libs " ${ZkasioZooKeeper_LINK_FLAGS}")
endif()
configure_file(cmake/zkasio.pc.in zkasio.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/zkasio.pc DESTINATION ${zkasio_pc_dir} COMPONENT zkasio-dev)

# zkasio_pc(PART COMPONENT DESCRIPTION [PACKAGE...]): zkasio-PART.pc, which needs other pkg-config PACKAGEs as well.
function(zkasio_pc part component description)
    list(PREPEND ARGN "zkasio = ${PROJECT_VERSION}")
    list(JOIN ARGN ", " requires)
    configure_file(cmake/zkasio-part.pc.in zkasio-${part}.pc @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/zkasio-${part}.pc DESTINATION ${zkasio_pc_dir} COMPONENT ${component})
endfunction()
if(ZKASIO_JSON)
    zkasio_pc(discovery zkasio-dev "Services and their instances, for zkasio")
endif()
if(ZKASIO_PROMETHEUS)
    zkasio_pc(prometheus zkasio-prometheus-dev "Prometheus metrics of zkasio's clients" prometheus-cpp-core)
endif()
if(ZKASIO_TESTING)
    zkasio_pc(testing zkasio-testing-dev "For tests of programs that use zkasio")
endif()
if(ZKASIO_KERBEROS)
    zkasio_pc(kerberos zkasio-kerberos-dev "Kerberos for zkasio's clients" krb5-gssapi)
endif()
if(ZKASIO_SASL)
    zkasio_pc(sasl zkasio-sasl-dev "SASL's DIGEST-MD5 for zkasio's clients" libcrypto)
endif()
if(ZKASIO_TLS)
    zkasio_pc(tls zkasio-tls-dev "TLS for zkasio's clients" openssl)
endif()
