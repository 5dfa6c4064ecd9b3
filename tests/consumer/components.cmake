# find_package(zkasio COMPONENTS ...) says which component it has not found, and why.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
consumer_begin(components)

# An installed zkasio without anything to link: json needs what is not there, and tls was not built.
set(installed ${work}/prefix/lib/cmake/zkasio)
file(COPY ${BINARY_DIR}/zkasio-config.cmake DESTINATION ${installed})
foreach(package ZkasioAsio ZkasioZooKeeper)
    file(WRITE ${installed}/Find${package}.cmake "set(${package}_FOUND TRUE)\n")
endforeach()
foreach(targets zkasio zkasio-json zkasio-testing)
    file(WRITE ${installed}/${targets}-targets.cmake "")
endforeach()

# expect(SAID ARGUMENT...): find_package(zkasio ARGUMENT...) fails and says SAID, or does not where SAID is empty.
function(expect said)
    list(JOIN ARGN " " arguments)
    file(WRITE ${work}/project/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)\nproject(consumer LANGUAGES CXX)\n"
        "set(CMAKE_DISABLE_FIND_PACKAGE_nlohmann_json TRUE)\nfind_package(zkasio REQUIRED ${arguments})\n")
    execute_process(COMMAND ${CMAKE_COMMAND} -S ${work}/project -B ${work}/build -G ${GENERATOR}
        -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${work}/prefix
        RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE output)
    string(REGEX REPLACE "[ \n]+" " " output "${output}")
    string(FIND "${output}" "${said}" found)
    if("${said}" STREQUAL "" AND failed OR NOT "${said}" STREQUAL "" AND (NOT failed OR found EQUAL -1))
        message(FATAL_ERROR "find_package(zkasio REQUIRED ${arguments}) does not say \"${said}\", but:\n${output}")
    endif()
endfunction()

expect("")
expect("" COMPONENTS testing)
expect("" OPTIONAL_COMPONENTS json tls tsl)
expect([[there is no component "tsl" of zkasio. There are: json, discovery, kerberos, prometheus, sasl, testing, tls.]] COMPONENTS tsl)
expect([[without its component "tls"]] COMPONENTS testing tls)
expect([[component "json" of zkasio needs nlohmann_json 3.9: not found]] COMPONENTS json)
