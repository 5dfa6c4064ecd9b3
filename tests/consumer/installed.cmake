# find_package finds an installed zkasio, and what users compile with it compiles without a warning.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
consumer_begin(installed)
install_and_move()
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${work}/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_PREFIX_PATH=${prefix})
# With another Asio than the library was built with, zkasio is not found, and it is said why.
file(WRITE ${work}/other/asio/version.hpp "#define ASIO_VERSION 102299\n")
execute_process(COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${work}/other/build -G ${GENERATOR}
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${prefix} -DZkasioAsio_INCLUDE_DIR=${work}/other
    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE said)
string(REGEX REPLACE "[ \n]+" " " said "${said}")
if(NOT failed OR NOT said MATCHES "this zkasio was built with Asio [0-9.]+, and here is Asio 1[.]22[.]99")
    message(FATAL_ERROR "find_package(zkasio) does not refuse another Asio, but says:\n${said}")
endif()
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/consumer)
run(${work}/build/host)
if(JSON)
    run(${work}/build/json_consumer)
    run(${work}/build/discovery_consumer)
endif()
if(TLS)
    run(${work}/build/tls_consumer)
endif()
if(PROMETHEUS)
    run(${work}/build/prometheus_consumer)
endif()
run(${work}/build/testing_consumer)
