# A project that has zkasio in a subdirectory installs what is its own, and no file of zkasio unless it asks for it.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
consumer_begin(embedded)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/embedded -B ${work}/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX}
    -DZKASIO_DIR=${PROJECT_DIR})
run(${CMAKE_COMMAND} --install ${work}/build --prefix ${work}/prefix)
file(GLOB_RECURSE installed RELATIVE ${work}/prefix ${work}/prefix/*)
if(NOT installed STREQUAL "share/parent/CMakeLists.txt")
    message(FATAL_ERROR "installed: ${installed}")
endif()
