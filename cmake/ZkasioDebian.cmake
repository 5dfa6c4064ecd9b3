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
    if(component MATCHES "zkasio-dev$")
        configure_file(cmake/debian/dev.lintian-overrides.in ${zkasio_debian_dir}/${name} @ONLY)
        install(FILES ${zkasio_debian_dir}/${name} DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
            COMPONENT ${component})
    endif()
endfunction()

# ---------------------------------------------------------------------------------------------------- the libraries
set(zkasio_same "(= ${zkasio_debian_version})")
set(zkasio_at_least "(>= ${PROJECT_VERSION})")

# zkasio_debian_of_file(FILE PACKAGE VERSION): which package has brought that file.
function(zkasio_debian_of_file file package version)
    execute_process(COMMAND dpkg-query -S ${file} OUTPUT_VARIABLE owner RESULT_VARIABLE unknown)
    if(unknown)
        message(FATAL_ERROR "${file} is of no package: Debian packages are made with those of libasio-dev and Boost")
    endif()
    string(REGEX REPLACE "[:,].*" "" owner "${owner}")
    execute_process(COMMAND dpkg-query -W -f "\${Version}" ${owner} OUTPUT_VARIABLE of_owner COMMAND_ERROR_IS_FATAL ANY)
    set(${package} ${owner} PARENT_SCOPE)
    set(${version} "${of_owner}" PARENT_SCOPE)
endfunction()

# zkasio_debian_asio(DEPENDS): its headers have to be those of this very version.
function(zkasio_debian_asio depends)
    zkasio_debian_of_file(${ZkasioAsio_INCLUDE_DIR}/asio/version.hpp package version)
    string(REGEX MATCH "^([0-9]+:)?([0-9]+[.][0-9]+)[.]([0-9]+)" upstream "${version}")
    math(EXPR next "${CMAKE_MATCH_3} + 1")
    set(${depends} "${package} (>= ${upstream})" "${package} (<< ${CMAKE_MATCH_1}${CMAKE_MATCH_2}.${next}~)" PARENT_SCOPE)
endfunction()

# Each library in packages of its own, which are alike.
foreach(zkasio_library zkasio boost_zkasio)
    if(NOT TARGET ${zkasio_library})
        continue()
    endif()
    get_target_property(zkasio_abi ${zkasio_library} SOVERSION)
    string(REPLACE "_" "-" zkasio_name lib${zkasio_library})
    string(REGEX REPLACE "^.*-asio" "" zkasio_asio_version ${zkasio_abi})
    if(zkasio_library STREQUAL "zkasio")
        set(zkasio_sources_dir ${PROJECT_SOURCE_DIR})
        set(zkasio_asio_name "standalone Asio")
        set(zkasio_asio_at "Asio ${zkasio_asio_version}")
        zkasio_debian_asio(zkasio_asio_depends)
    else()
        set(zkasio_sources_dir ${PROJECT_BINARY_DIR}/boost_zkasio)
        set(zkasio_asio_name "Boost.Asio")
        # The name of Boost's package has Boost's version.
        zkasio_debian_of_file(${BoostZkasioAsio_INCLUDE_DIR}/boost/asio/version.hpp zkasio_asio_depends zkasio_asio_at)
        string(REGEX MATCH "^[0-9]+[.][0-9]+" zkasio_asio_at "${zkasio_asio_at}")
        set(zkasio_asio_at "Boost ${zkasio_asio_at}")
        install(FILES examples/beast/lock_per_request.cpp
            DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${zkasio_name}-dev/examples COMPONENT ${zkasio_library}-dev)
    endif()
    set(zkasio_runtime ${zkasio_name}${zkasio_abi})
    set(zkasio_text "zkasio gives C++20 servers on ${zkasio_asio_name} what they need to act
together through ZooKeeper: locks, elections, caches, group membership,
service discovery and configuration, as coroutines that are cancelled when
their session ends.")

    zkasio_debian_package(${zkasio_library}-runtime ${zkasio_runtime} libs
        "ZooKeeper coordination for servers on ${zkasio_asio_name} - shared library"
        "${zkasio_text}
.
This package has the shared libraries of the core and of service
discovery, built with ${zkasio_asio_at}.")
    zkasio_debian_package(${zkasio_library}-dev ${zkasio_name}-dev libdevel
        "ZooKeeper coordination for servers on ${zkasio_asio_name} - development files"
        "${zkasio_text}
.
This package has what programs are compiled with: headers, a CMake
package, pkg-config files, and examples."
        "${zkasio_runtime} ${zkasio_same}" ${zkasio_asio_depends})
    string(TOUPPER ${zkasio_library}-dev zkasio_key)
    set(CPACK_DEBIAN_${zkasio_key}_PACKAGE_SUGGESTS "nlohmann-json3-dev (>= 3.9)")
    install(FILES ${zkasio_sources_dir}/examples/tour.cpp ${zkasio_sources_dir}/examples/locks.cpp
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${zkasio_name}-dev/examples COMPONENT ${zkasio_library}-dev)

    if(TARGET ${zkasio_library}_prometheus)
        zkasio_debian_package(${zkasio_library}-prometheus ${zkasio_name}-prometheus${zkasio_abi} libs
            "Prometheus metrics of clients on ${zkasio_asio_name} - shared library"
            "${zkasio_text}
.
This package has what offers the statistics of its clients to Prometheus."
            "${zkasio_runtime} ${zkasio_at_least}")
        zkasio_debian_package(${zkasio_library}-prometheus-dev ${zkasio_name}-prometheus-dev libdevel
            "Prometheus metrics of clients on ${zkasio_asio_name} - development files"
            "${zkasio_text}
.
This package has what programs are compiled with that offer the
statistics of its clients to Prometheus."
            "${zkasio_name}-prometheus${zkasio_abi} ${zkasio_same}" "${zkasio_name}-dev ${zkasio_same}"
            prometheus-cpp-dev)
    endif()

    if(TARGET ${zkasio_library}_kerberos)
        zkasio_debian_package(${zkasio_library}-kerberos ${zkasio_name}-kerberos${zkasio_abi} libs
            "Kerberos for ZooKeeper clients on ${zkasio_asio_name} - shared library"
            "${zkasio_text}
.
This package has what authenticates clients by Kerberos (SASL's GSSAPI)."
            "${zkasio_runtime} ${zkasio_at_least}")
        zkasio_debian_package(${zkasio_library}-kerberos-dev ${zkasio_name}-kerberos-dev libdevel
            "Kerberos for ZooKeeper clients on ${zkasio_asio_name} - development files"
            "${zkasio_text}
.
This package has what programs are compiled with that authenticate
themselves by Kerberos (SASL's GSSAPI)."
            "${zkasio_name}-kerberos${zkasio_abi} ${zkasio_same}" "${zkasio_name}-dev ${zkasio_same}" libkrb5-dev)
    endif()

    if(TARGET ${zkasio_library}_sasl)
        zkasio_debian_package(${zkasio_library}-sasl ${zkasio_name}-sasl${zkasio_abi} libs
            "SASL for ZooKeeper clients on ${zkasio_asio_name} - shared library"
            "${zkasio_text}
.
This package has what authenticates clients by SASL's DIGEST-MD5."
            "${zkasio_runtime} ${zkasio_at_least}")
        zkasio_debian_package(${zkasio_library}-sasl-dev ${zkasio_name}-sasl-dev libdevel
            "SASL for ZooKeeper clients on ${zkasio_asio_name} - development files"
            "${zkasio_text}
.
This package has what programs are compiled with that authenticate
themselves by SASL's DIGEST-MD5."
            "${zkasio_name}-sasl${zkasio_abi} ${zkasio_same}" "${zkasio_name}-dev ${zkasio_same}" libssl-dev)
    endif()

    if(TARGET ${zkasio_library}_tls)
        zkasio_debian_package(${zkasio_library}-tls ${zkasio_name}-tls${zkasio_abi} libs
            "TLS for ZooKeeper clients on ${zkasio_asio_name} - shared library"
            "${zkasio_text}
.
This package has what encrypts connections to ZooKeeper, with OpenSSL."
            "${zkasio_runtime} ${zkasio_at_least}")
        zkasio_debian_package(${zkasio_library}-tls-dev ${zkasio_name}-tls-dev libdevel
            "TLS for ZooKeeper clients on ${zkasio_asio_name} - development files"
            "${zkasio_text}
.
This package has what programs are compiled with that encrypt their
connections to ZooKeeper."
            "${zkasio_name}-tls${zkasio_abi} ${zkasio_same}" "${zkasio_name}-dev ${zkasio_same}" libssl-dev)
    endif()

    if(TARGET ${zkasio_library}_testing)
        zkasio_debian_package(${zkasio_library}-testing-dev ${zkasio_name}-testing-dev libdevel
            "ZooKeeper in memory, for tests of programs on ${zkasio_asio_name}"
            "${zkasio_text}
.
This package has what tests of such programs are compiled with: an
ensemble in memory with a clock of its own, proxies that cut connections,
and throw-away servers. A static library."
            "${zkasio_name}-dev ${zkasio_same}")
    endif()
endforeach()

if(TARGET zklock)
    zkasio_debian_package(zklock zklock admin
        "locks, elections and nodes of ZooKeeper, from a shell"
        "zklock runs commands under locks that all machines share, and kills them
before anybody else can have the lock. It shows who holds and who waits,
follows elections, and reads and writes nodes. Its locks are those of
Apache Curator, kazoo and zkasio."
        "libzkasio${zkasio_soversion} ${zkasio_at_least}")
endif()

# cpack does not build: the library and zklock only, not what else a build directory may be able to.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
add_custom_target(zkasio_packages COMMAND ${CMAKE_CPACK_COMMAND} -B ${CMAKE_CURRENT_BINARY_DIR}/packages VERBATIM)
foreach(library zkasio boost_zkasio)
    foreach(part "" _discovery _kerberos _prometheus _sasl _tls _testing)
        if(TARGET ${library}${part})
            add_dependencies(zkasio_packages ${library}${part})
        endif()
    endforeach()
endforeach()
if(TARGET zklock)
    add_dependencies(zkasio_packages zklock)
endif()
# dpkg-shlibdeps looks here for libraries that are in no package yet.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR} ${PROJECT_BINARY_DIR}/boost)
include(CPack)
