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

foreach(static "" --static)
    run(${PKG_CONFIG} --cflags --libs ${static} zkasio)
    separate_arguments(flags UNIX_COMMAND "${output}")
    run(${CXX} -std=c++20 -Wall -Wextra -Werror ${CMAKE_CURRENT_LIST_DIR}/main.cpp -o ${work}/consumer${static} ${flags}
        -Wl,-rpath,${lib_dir})
    run(${work}/consumer${static})
    if(JSON)
        run(${PKG_CONFIG} --cflags --libs ${static} zkasio-discovery)
        separate_arguments(flags UNIX_COMMAND "${output}")
        run(${CXX} -std=c++20 -Wall -Wextra -Werror ${CMAKE_CURRENT_LIST_DIR}/discovery.cpp
            -o ${work}/discovery${static} ${flags} -Wl,-rpath,${lib_dir})
        run(${work}/discovery${static})
    endif()
endforeach()
