# find_package finds an installed zkasio, and what users compile with it compiles without a warning.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
consumer_begin(installed)
install_and_move()
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${work}/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/consumer)
run(${work}/build/host)
if(JSON)
    run(${work}/build/json_consumer)
    run(${work}/build/discovery_consumer)
endif()
