# cmake -DCXX=compiler "-DFLAGS=..." -P run.cmake: accepted.cpp compiles, and in no_body.cpp, async_refused.cpp and
# refused.cpp each line that is marked fails with our words, and no other. Only g++ 12 and older refuse what is in
# refused.cpp. clang, if there is one, warns of the lines that are marked in dropped.cpp, which g++ 12 does not.
separate_arguments(flags UNIX_COMMAND "${FLAGS}")
set(here ${CMAKE_CURRENT_LIST_DIR})
set(compile ${CXX} -std=c++20 -fsyntax-only -w ${flags})

execute_process(COMMAND ${compile} ${here}/accepted.cpp RESULT_VARIABLE failed ERROR_VARIABLE said)
if(failed)
    message(FATAL_ERROR "accepted.cpp does not compile:\n${said}")
endif()

# Compares the errors in `said` with the marked lines of the file: `words` begins each of them. With a fourth argument,
# errors in Asio's headers may follow ours.
function(compare_errors file words said)
    file(STRINGS ${here}/${file} lines)
    set(number 0)
    set(marked 0)
    foreach(line IN LISTS lines)
        math(EXPR number "${number} + 1")
        if(line MATCHES "// refused$")
            math(EXPR marked "${marked} + 1")
            # Of a function whose result is deduced, clang names the line by the lambda that is in it.
            set(told "${file}:${number}:[0-9]+: +(required from here|note: in instantiation of)")
            if(NOT said MATCHES "${told}|lambda at [^\n)]*${file}:${number}:")
                message(FATAL_ERROR "${file}:${number} is not refused: ${line}\n${said}")
            endif()
        endif()
    endforeach()
    string(REGEX MATCHALL "error: static[^\n]*: ${words}" errors "${said}")
    list(LENGTH errors count)
    if(ARGN)
        string(REGEX REPLACE "[^\n]*/asio/[^\n]*: error: " "" said_elsewhere "${said}")
    else()
        set(said_elsewhere "${said}")
    endif()
    string(REGEX MATCHALL ": error: " all "${said_elsewhere}")
    list(LENGTH all total)
    if(NOT count EQUAL marked OR NOT total EQUAL marked)
        message(FATAL_ERROR
            "${file}: ${marked} lines are marked, ${count} are refused with our words, ${total} errors:\n${said}")
    endif()
endfunction()

execute_process(COMMAND ${compile} ${here}/no_body.cpp RESULT_VARIABLE failed ERROR_VARIABLE said)
compare_errors(no_body.cpp
    "a body takes what it is called with, see the condition, and returns an asio::awaitable, whose executor is asio::any_io_executor"
    "${said}")
foreach(called_with "lock_guard ?&" "leadership ?&" "session ?&")
    if(NOT said MATCHES "a_body_is_called_with<(const )?zkasio::${called_with}>")
        message(FATAL_ERROR "no_body.cpp: the errors do not name what a body gets: ${called_with}\n${said}")
    endif()
endforeach()

execute_process(COMMAND ${compile} ${here}/async_refused.cpp RESULT_VARIABLE failed ERROR_VARIABLE said)
set(no_executor "the handler has no executor to run the operation on: write zkasio::async\\(executor, operation, token")
set(no_default "when it fails, a default-constructed result is passed: return a std::optional")
compare_errors(async_refused.cpp "(${no_executor}|${no_default})" "${said}" more)
foreach(words IN ITEMS ${no_executor} ${no_default})
    if(NOT said MATCHES "${words}")
        message(FATAL_ERROR "async_refused.cpp: no error says: ${words}\n${said}")
    endif()
endforeach()

execute_process(COMMAND ${compile} ${here}/executor_refused.cpp RESULT_VARIABLE failed ERROR_VARIABLE said)
compare_errors(executor_refused.cpp
    "an operation is an asio::awaitable whose executor is asio::any_io_executor: a coroutine of another type awaits"
    "${said}")

get_filename_component(name ${CXX} NAME)
if(name MATCHES clang)
    set(clang ${CXX})
else()
    find_program(clang clang++-19)
endif()
if(clang)
    execute_process(
        COMMAND ${clang} -std=c++20 -fsyntax-only -DASIO_HAS_CO_AWAIT=1 -DASIO_HAS_STD_COROUTINE=1 ${flags}
            ${here}/dropped.cpp
        RESULT_VARIABLE failed ERROR_VARIABLE said)
    file(STRINGS ${here}/dropped.cpp lines)
    set(marked "")
    set(number 0)
    foreach(line IN LISTS lines)
        math(EXPR number "${number} + 1")
        if(line MATCHES "// refused$")
            list(APPEND marked "dropped.cpp:${number}:5: warning: ignoring return value")
        endif()
    endforeach()
    string(REGEX MATCHALL "dropped.cpp:[0-9]+:[0-9]+: warning: ignoring return value" warnings "${said}")
    if(failed OR NOT warnings STREQUAL marked)
        message(FATAL_ERROR "dropped.cpp: the warnings are not those of the marked lines:\n${said}")
    endif()
endif()

execute_process(COMMAND ${compile} ${here}/refused.cpp RESULT_VARIABLE failed ERROR_VARIABLE said)
if(NOT REFUSES)
    if(failed)
        message(FATAL_ERROR "refused.cpp is fine for this compiler, and does not compile:\n${said}")
    endif()
    return()
endif()
compare_errors(refused.cpp "in a co_await expression g\\+\\+ 12 destroys this callable twice" "${said}")
