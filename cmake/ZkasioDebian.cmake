# Debian packages, by cpack: what scripts/package.sh makes. One for each component of what is installed, see
# ZkasioInstall.cmake; docs/packages.md says what is in which and why.
include_guard(DIRECTORY)
if(NOT BUILD_SHARED_LIBS)
    message(FATAL_ERROR "ZKASIO_DEBIAN needs BUILD_SHARED_LIBS: Debian's programs share their libraries")
endif()
set(ZKASIO_MAINTAINER "zkasio maintainers <maintainers@zkasio.invalid>" CACHE STRING
    "Maintainer of the Debian packages")
set(ZKASIO_DEBIAN_REVISION "1" CACHE STRING "What follows zkasio's version in that of the Debian packages")
set(ZKASIO_DEBIAN_SUITE "unstable" CACHE STRING "Which Debian the packages are for, as their changelogs say")

set(zkasio_debian_version "${PROJECT_VERSION}-${ZKASIO_DEBIAN_REVISION}")
# The headers of libasio-dev have to be those of this very version; its Debian version has an epoch in front.
execute_process(COMMAND dpkg-query -W -f "\${Version}" libasio-dev OUTPUT_VARIABLE zkasio_libasio
    COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH "^([0-9]+:)?([0-9]+[.][0-9]+)[.]([0-9]+)" zkasio_asio_of_debian "${zkasio_libasio}")
set(zkasio_asio_epoch "${CMAKE_MATCH_1}")
set(zkasio_asio_minor "${CMAKE_MATCH_2}")
set(zkasio_asio_patch "${CMAKE_MATCH_3}")
if(NOT "${zkasio_asio_minor}.${zkasio_asio_patch}" STREQUAL ZkasioAsio_VERSION)
    message(FATAL_ERROR "libasio-dev is ${zkasio_libasio}, and the Asio that was found is ${ZkasioAsio_VERSION} "
        "(${ZkasioAsio_INCLUDE_DIR})")
endif()
math(EXPR zkasio_asio_next "${zkasio_asio_patch} + 1")
set(zkasio_libasio "libasio-dev (>= ${zkasio_asio_of_debian})"
    "libasio-dev (<< ${zkasio_asio_epoch}${zkasio_asio_minor}.${zkasio_asio_next}~)")

# ------------------------------------------------------------------------------------- what is said of all packages
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGE_NAME zkasio)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_PACKAGE_SOURCE zkasio)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${ZKASIO_DEBIAN_REVISION})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${ZKASIO_MAINTAINER}")
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_POST_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian/finish.cmake)
set(CPACK_COMPONENTS_ALL "")

# What every package has in /usr/share/doc: whose it is, and what has changed.
file(READ LICENSE zkasio_license)
string(STRIP "${zkasio_license}" zkasio_license)
string(REGEX REPLACE "\n\n" "\n.\n" zkasio_license "${zkasio_license}")
string(REPLACE "\n" "\n " zkasio_license "${zkasio_license}")
configure_file(cmake/debian/copyright.in debian/copyright @ONLY)
string(TIMESTAMP zkasio_debian_date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # of SOURCE_DATE_EPOCH, if there is that
configure_file(cmake/debian/changelog.in debian/changelog.Debian @ONLY)
configure_file(CHANGELOG.md debian/changelog COPYONLY)
set(zkasio_debian_dir ${CMAKE_CURRENT_BINARY_DIR}/debian)
execute_process(COMMAND gzip -9nkf ${zkasio_debian_dir}/changelog.Debian ${zkasio_debian_dir}/changelog
    COMMAND_ERROR_IS_FATAL ANY)

# zkasio_debian_package(COMPONENT NAME SECTION SUMMARY TEXT [DEPENDS...]): a TEXT of lines that the control file can
# have.
function(zkasio_debian_package component name section summary text)
    string(TOUPPER ${component} key)
    list(JOIN ARGN ", " depends)
    string(STRIP "${text}" text)
    set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
    set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${name} PARENT_SCOPE)
    set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${section} PARENT_SCOPE)
    set(CPACK_DEBIAN_${key}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
    set(CPACK_DEBIAN_${key}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
    if(component MATCHES "dev$")
        set(CPACK_DEBIAN_${key}_PACKAGE_SHLIBDEPS OFF PARENT_SCOPE)
    else()
        set(CPACK_DEBIAN_${key}_PACKAGE_SHLIBDEPS ON PARENT_SCOPE)
    endif()
    if(section STREQUAL "libs")
        set(CPACK_DEBIAN_${key}_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/debian/triggers PARENT_SCOPE)
    endif()
    install(FILES ${zkasio_debian_dir}/copyright ${zkasio_debian_dir}/changelog.Debian.gz
        ${zkasio_debian_dir}/changelog.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component})
    if(EXISTS ${PROJECT_SOURCE_DIR}/cmake/debian/${component}.lintian-overrides.in)
        configure_file(cmake/debian/${component}.lintian-overrides.in ${zkasio_debian_dir}/${name} @ONLY)
        install(FILES ${zkasio_debian_dir}/${name} DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
            COMPONENT ${component})
    endif()
endfunction()

# ---------------------------------------------------------------------------------------------------- the packages
set(zkasio_text "zkasio gives C++20 servers on standalone Asio what they need to act
together through ZooKeeper: locks, elections, caches, group membership,
service discovery and configuration, as coroutines that are cancelled when
their session ends.")
set(zkasio_abi ${zkasio_soversion})
set(zkasio_same "(= ${zkasio_debian_version})")
set(zkasio_at_least "(>= ${PROJECT_VERSION})")

zkasio_debian_package(runtime libzkasio${zkasio_abi} libs
    "ZooKeeper coordination for C++20 async servers - shared library"
    "${zkasio_text}
.
This package has the shared libraries of the core and of service
discovery, built with Asio ${ZkasioAsio_VERSION}.")
zkasio_debian_package(dev libzkasio-dev libdevel
    "ZooKeeper coordination for C++20 async servers - development files"
    "${zkasio_text}
.
This package has what programs are compiled with: headers, a CMake
package, pkg-config files, and examples."
    "libzkasio${zkasio_abi} ${zkasio_same}" ${zkasio_libasio})
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "nlohmann-json3-dev (>= 3.9)")
install(FILES examples/tour.cpp examples/locks.cpp
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libzkasio-dev/examples COMPONENT dev)

if(ZKASIO_PROMETHEUS)
    zkasio_debian_package(prometheus libzkasio-prometheus${zkasio_abi} libs
        "Prometheus metrics of zkasio's clients - shared library"
        "${zkasio_text}
.
This package has what offers the statistics of its clients to Prometheus."
        "libzkasio${zkasio_abi} ${zkasio_at_least}")
    zkasio_debian_package(prometheus-dev libzkasio-prometheus-dev libdevel
        "Prometheus metrics of zkasio's clients - development files"
        "${zkasio_text}
.
This package has what programs are compiled with that offer the
statistics of its clients to Prometheus."
        "libzkasio-prometheus${zkasio_abi} ${zkasio_same}" "libzkasio-dev ${zkasio_same}" prometheus-cpp-dev)
endif()

if(ZKASIO_TLS)
    zkasio_debian_package(tls libzkasio-tls${zkasio_abi} libs
        "TLS for zkasio's clients - shared library"
        "${zkasio_text}
.
This package has what encrypts connections to ZooKeeper, with OpenSSL."
        "libzkasio${zkasio_abi} ${zkasio_at_least}")
    zkasio_debian_package(tls-dev libzkasio-tls-dev libdevel
        "TLS for zkasio's clients - development files"
        "${zkasio_text}
.
This package has what programs are compiled with that encrypt their
connections to ZooKeeper."
        "libzkasio-tls${zkasio_abi} ${zkasio_same}" "libzkasio-dev ${zkasio_same}" libssl-dev)
endif()

if(ZKASIO_TESTING)
    zkasio_debian_package(testing-dev libzkasio-testing-dev libdevel
        "ZooKeeper in memory, for tests of programs that use zkasio"
        "${zkasio_text}
.
This package has what tests of such programs are compiled with: an
ensemble in memory with a clock of its own, proxies that cut connections,
and throw-away servers. A static library."
        "libzkasio-dev ${zkasio_same}")
endif()

if(TARGET zklock)
    zkasio_debian_package(zklock zklock admin
        "locks, elections and nodes of ZooKeeper, from a shell"
        "zklock runs commands under locks that all machines share, and kills them
before anybody else can have the lock. It shows who holds and who waits,
follows elections, and reads and writes nodes. Its locks are those of
Apache Curator, kazoo and zkasio."
        "libzkasio${zkasio_abi} ${zkasio_at_least}")
endif()

# cpack does not build: the library and zklock only, not what else a build directory may be able to.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
add_custom_target(zkasio_packages COMMAND ${CMAKE_CPACK_COMMAND} -B ${CMAKE_CURRENT_BINARY_DIR}/packages VERBATIM)
foreach(target zkasio zkasio_discovery zkasio_prometheus zkasio_tls zkasio_testing zklock)
    if(TARGET ${target})
        add_dependencies(zkasio_packages ${target})
    endif()
endforeach()
# dpkg-shlibdeps looks here for libraries that are in no package yet.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_CURRENT_BINARY_DIR})
include(CPack)
