# Installs zkasio from BINARY_DIR into a prefix of its own, and builds and runs the consumer against it.
set(prefix ${BINARY_DIR}/consumer/prefix)
file(REMOVE_RECURSE ${BINARY_DIR}/consumer)
function(run)
    execute_process(COMMAND ${ARGV} RESULT_VARIABLE failed)
    if(failed)
        message(FATAL_ERROR "${ARGV}: ${failed}")
    endif()
endfunction()
run(${CMAKE_COMMAND} --install ${BINARY_DIR} --prefix ${prefix})
run(${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${BINARY_DIR}/consumer/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${BINARY_DIR}/consumer/build)
run(${BINARY_DIR}/consumer/build/consumer)
