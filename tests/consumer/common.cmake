# What the consumer tests share. They are scripts of CMake: see ../CMakeLists.txt for what they are given.
cmake_minimum_required(VERSION 3.25)

# consumer_begin(NAME): `work` is an empty directory.
macro(consumer_begin name)
    set(work ${BINARY_DIR}/consumer/${name})
    file(REMOVE_RECURSE ${work})
    file(MAKE_DIRECTORY ${work})
endmacro()

# run(COMMAND...): the test fails when it does. `output` is what it has printed.
function(run)
    execute_process(COMMAND ${ARGV} RESULT_VARIABLE failed OUTPUT_VARIABLE out ECHO_OUTPUT_VARIABLE)
    if(failed)
        list(JOIN ARGV " " command)
        message(FATAL_ERROR "${command}: ${failed}")
    endif()
    set(output "${out}" PARENT_SCOPE)
endfunction()

# Installs into one place and moves it to `prefix`: nothing may remember where it was.
macro(install_and_move)
    run(${CMAKE_COMMAND} --install ${BINARY_DIR} --prefix ${work}/first)
    set(prefix ${work}/moved)
    file(RENAME ${work}/first ${prefix})
endmacro()
