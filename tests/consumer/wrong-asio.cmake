# Whoever compiles with an Asio that cannot work is told why, by an #error.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
consumer_begin(wrong-asio)

file(WRITE ${work}/all.cpp "#include <zkasio/client.hpp>\n")
file(WRITE ${work}/old/asio/version.hpp "#define ASIO_VERSION 101802\n")
file(WRITE ${work}/other/asio/version.hpp "#define ASIO_VERSION 102299\n")
set(right -std=c++20 -DASIO_STANDALONE -DASIO_DISABLE_STD_ALIGNED_ALLOC
    -DASIO_HAS_CO_AWAIT=1 -DASIO_HAS_STD_COROUTINE=1)

# expect(ERROR FLAGS...): compiling with FLAGS says ERROR, or nothing when ERROR is empty.
function(expect error)
    execute_process(COMMAND ${CXX} -fsyntax-only -I${PROJECT_DIR}/lib ${ARGN} ${work}/all.cpp RESULT_VARIABLE failed
        ERROR_VARIABLE said)
    if("${error}" STREQUAL "" AND failed)
        message(FATAL_ERROR "does not compile with ${ARGN}:\n${said}")
    elseif(NOT "${error}" STREQUAL "")
        string(FIND "${said}" "${error}" found)
        if(NOT failed OR found EQUAL -1)
            string(SUBSTRING "${said}" 0 2000 said)
            message(FATAL_ERROR "\"${error}\" is not said with ${ARGN}, but:\n${said}")
        endif()
    endif()
endfunction()

expect("" ${right})
expect("standalone Asio 1.22 or later: this one is older" ${right} -I${work}/old)
expect("" ${right} -I${work}/other -DZKASIO_BUILT_WITH_ASIO=102299)
expect("built with another Asio than this one" ${right} -I${work}/other -DZKASIO_BUILT_WITH_ASIO=102298)
expect("Asio without Boost" -std=c++20 -DASIO_ENABLE_BOOST -DASIO_DISABLE_STD_ALIGNED_ALLOC)
expect("-DASIO_DISABLE_STD_ALIGNED_ALLOC" -std=c++20 -DASIO_STANDALONE)
expect("compile as C++20" -std=c++17 -DASIO_STANDALONE -DASIO_DISABLE_STD_ALIGNED_ALLOC)

# refers(NAME FLAGS...): an object that was compiled with FLAGS refers to what only a library of these settings defines.
function(refers name)
    execute_process(COMMAND ${CXX} -c -I${PROJECT_DIR}/lib ${right} ${ARGN} ${work}/all.cpp -o ${work}/all.o
        RESULT_VARIABLE failed ERROR_VARIABLE said)
    if(failed)
        message(FATAL_ERROR "does not compile with ${ARGN}:\n${said}")
    endif()
    file(STRINGS ${work}/all.o found REGEX "library_was_not_built[0-9]+${name}")
    if(NOT found)
        message(FATAL_ERROR "an object compiled with ${ARGN} does not refer to ${name}")
    endif()
endfunction()

refers(without_GLIBCXX_DEBUG)
refers(with_reactor_epoll)
refers(with_GLIBCXX_DEBUG -D_GLIBCXX_DEBUG)
refers(with_handler_tracking -DASIO_ENABLE_HANDLER_TRACKING)
refers(with_reactor_without_epoll -DASIO_DISABLE_EPOLL)
refers(without_threads -DASIO_DISABLE_THREADS)
