# pkg-config finds an installed zkasio, wherever it was moved to, and says all that a compiler needs; with --static,
# too.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
find_program(PKG_CONFIG NAMES pkgconf pkg-config REQUIRED)
consumer_begin(pkg-config)
install_and_move()
file(GLOB_RECURSE pc_file ${prefix}/zkasio.pc)
cmake_path(GET pc_file PARENT_PATH pc_dir)
cmake_path(GET pc_dir PARENT_PATH lib_dir)
set(ENV{PKG_CONFIG_PATH} ${pc_dir})

run(${PKG_CONFIG} --variable=prefix zkasio)
string(STRIP "${output}" said)
file(REAL_PATH "${said}" said)
file(REAL_PATH "${prefix}" moved)
if(NOT said STREQUAL moved)
    message(FATAL_ERROR "the prefix is ${moved}, and zkasio.pc says ${said}")
endif()

# Nor does any other line of any of the files remember where it was, or where it should have been, installed.
file(STRINGS ${BINARY_DIR}/CMakeCache.txt configured REGEX "^CMAKE_INSTALL_PREFIX:")
string(REGEX REPLACE "^[^=]*=" "" configured "${configured}")
file(GLOB pc_files ${pc_dir}/*.pc)
foreach(file ${pc_files})
    file(STRINGS ${file} remembered REGEX "(=|-I|-L)(${work}|${configured})/")
    if(remembered)
        message(FATAL_ERROR "${file} has an absolute path: ${remembered}")
    endif()
endforeach()

# compile(PACKAGE SOURCE STATIC): a program by pkg-config alone, which runs.
function(compile package source static)
    run(${PKG_CONFIG} --cflags --libs ${static} ${package})
    separate_arguments(flags UNIX_COMMAND "${output}")
    run(${CXX} -std=c++20 -Wall -Wextra -Werror ${CMAKE_CURRENT_LIST_DIR}/${source}.cpp -o ${work}/${source}${static}
        ${flags} -Wl,-rpath,${lib_dir})
    run(${work}/${source}${static})
endfunction()

foreach(static "" --static)
    compile(zkasio main "${static}")
    if(JSON)
        compile(zkasio-discovery discovery "${static}")
    endif()
endforeach()
if(PROMETHEUS)
    compile(zkasio-prometheus prometheus "")  # prometheus-cpp has no static library in Debian's packages
endif()
