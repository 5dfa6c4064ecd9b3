# zkasio_boostify(INTO): makes, in the folder INTO, the project boost_zkasio out of this one: the same library for
# Boost.Asio. Configuring again, which a change of any source brings about, writes only what has changed.
#
# In sources, `asio` becomes `boost::asio`, the error codes of std those of Boost.System, and the namespace and the
# include root `zkasio` become `boost_zkasio`. In CMake's files all names are another project's. What is written for
# Boost stands beside this file.
function(zkasio_boostify into)
    set(files CMakeLists.txt)
    foreach(pattern lib/*.cpp lib/*.hpp cmake/*.cmake cmake/*.in cmake/exports.map tests/CMakeLists.txt
            tests/support/* tests/unit/* tests/simulation/* tests/testing/* tests/integration/* tests/tls/*
            tests/consumer/*.cpp tests/consumer/CMakeLists.txt examples/guide/start/* examples/tour.cpp examples/locks.cpp
            examples/span_observer.hpp)
        file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/${pattern}")
        list(APPEND files ${found})
    endforeach()
    # What looks at this project's files, as they are.
    list(FILTER files EXCLUDE REGEX "^(cmake/boost/|cmake/debian/|tests/unit/(storeys|dead_handles)_test[.]cpp)")
    list(REMOVE_DUPLICATES files)
    set(written "")
    foreach(file IN LISTS files)
        set(from "${PROJECT_SOURCE_DIR}/${file}")
        get_filename_component(name "${file}" NAME)
        if(EXISTS "${PROJECT_SOURCE_DIR}/cmake/boost/${name}" AND NOT name MATCHES "CMakeLists")
            set(from "${PROJECT_SOURCE_DIR}/cmake/boost/${name}")
        endif()
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${from}")
        zkasio_boostify_path("${file}" to)
        list(APPEND written "${to}")
        set(to "${into}/${to}")
        if(EXISTS "${to}" AND NOT "${from}" IS_NEWER_THAN "${to}"
                AND NOT "${CMAKE_CURRENT_FUNCTION_LIST_FILE}" IS_NEWER_THAN "${to}")
            continue()
        endif()
        file(READ "${from}" text)
        if(file MATCHES "[.](cpp|hpp)$")
            zkasio_boostify_source(text)
        elseif(file MATCHES "(CMakeLists[.]txt|[.]cmake|[.]in)$")
            zkasio_boostify_project(text)
        endif()
        set(before "")
        if(EXISTS "${to}")
            file(READ "${to}" before)
        endif()
        if(NOT "x${text}" STREQUAL "x${before}")
            file(WRITE "${to}" "${text}")
        endif()
    endforeach()
    # A source that is gone here goes there.
    file(GLOB_RECURSE there RELATIVE "${into}" "${into}/*")
    list(REMOVE_ITEM there ${written})
    foreach(file IN LISTS there)
        file(REMOVE "${into}/${file}")
    endforeach()
endfunction()

# Adds the project boost_zkasio, with this one's options. Its tests are there where it is the only one: with both, each
# name of a test would be there twice.
macro(zkasio_add_boost)
    foreach(option INSTALL DEBIAN WERROR JSON PROMETHEUS KERBEROS SASL TLS TESTING)
        if(DEFINED ZKASIO_${option})
            set(BOOST_ZKASIO_${option} ${ZKASIO_${option}})
        endif()
    endforeach()
    set(BOOST_ZKASIO_TESTS OFF)
    if(ZKASIO_TESTS AND ZKASIO_ASIO STREQUAL "boost")
        set(BOOST_ZKASIO_TESTS ON)
    endif()
    set(BOOST_ZKASIO_EXAMPLES OFF)
    set(boost_zkasio_checkout "${PROJECT_SOURCE_DIR}")
    zkasio_boostify("${PROJECT_BINARY_DIR}/boost_zkasio")
    add_subdirectory("${PROJECT_BINARY_DIR}/boost_zkasio" "${PROJECT_BINARY_DIR}/boost")
endmacro()

function(zkasio_boostify_path file to)
    string(REGEX REPLACE "^lib/zkasio/" "lib/boost_zkasio/" file "${file}")
    string(REGEX REPLACE "^cmake/zkasio" "cmake/boost_zkasio" file "${file}")
    string(REPLACE "Zkasio" "BoostZkasio" file "${file}")
    set(${to} "${file}" PARENT_SCOPE)
endfunction()

function(zkasio_boostify_source variable)
    set(text "${${variable}}")
    string(REPLACE "asio::error_code" "boost::system::error_code" text "${text}")
    string(REPLACE "defined(ASIO_" "defined(BOOST_ASIO_" text "${text}")
    string(REGEX REPLACE "#include <asio([/.])" "#include <boost/asio\\1" text "${text}")
    string(REGEX REPLACE "(^|[^a-zA-Z0-9_:]|[^a-zA-Z0-9_:]::)asio::" "\\1boost::asio::" text "${text}")
    string(REGEX REPLACE "namespace asio([^a-z_])" "namespace boost::asio\\1" text "${text}")
    string(REGEX REPLACE "#include <system_error>" "#include <boost/system/system_error.hpp>\n#include <system_error>"
        text "${text}")
    string(REGEX REPLACE "std::make_error_code\\(" "boost::system::errc::make_error_code(" text "${text}")
    string(REGEX REPLACE "std::errc::" "boost::system::errc::" text "${text}")
    string(REGEX REPLACE
        "std::(error_code|error_condition|error_category|system_error|generic_category|system_category|is_error_code_enum|is_error_condition_enum)([^a-zA-Z0-9_])"
        "boost::system::\\1\\2" text "${text}")
    string(REGEX REPLACE "(namespace |#include <|#include \"|[^a-zA-Z0-9_]::|[^a-zA-Z0-9_:/\"])zkasio(::|/| \\{|;|\n)"
        "\\1boost_zkasio\\2" text "${text}")
    set(${variable} "${text}" PARENT_SCOPE)
endfunction()

function(zkasio_boostify_project variable)
    set(text "${${variable}}")
    string(REPLACE "zkasio" "boost_zkasio" text "${text}")
    string(REPLACE "boost_boost_zkasio" "boost_zkasio" text "${text}")
    string(REPLACE "Zkasio" "BoostZkasio" text "${text}")
    string(REGEX REPLACE "ZKASIO_(ASIO|TESTS|EXAMPLES|BENCHMARKS|INSTALL|ZKLOCK|DEBIAN|WERROR|JSON|PROMETHEUS|TLS|TESTING|BUILT_WITH_ASIO)([^A-Z_])"
        "BOOST_ZKASIO_\\1\\2" text "${text}")
    set(${variable} "${text}" PARENT_SCOPE)
endfunction()
