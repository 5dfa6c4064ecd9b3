# A shared zkasio exports the public API, all of it, and nothing of detail/: LEAST functions at least, and the typeinfo
# of CAUGHT. ALSO: functions of C that it has on purpose, "a|b".
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

# symbols(VARIABLE NM_ARGUMENTS...): a line for each.
function(symbols variable)
    execute_process(COMMAND ${NM} --defined-only ${ARGN} OUTPUT_VARIABLE out COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX REPLACE "[][;]" "," out "${out}")  # brackets and semicolons mean something in lists
    string(REGEX MATCHALL "[^\n]+" out "${out}")
    set(${variable} "${out}" PARENT_SCOPE)
endfunction()

symbols(exported -D -C ${SHARED_LIBRARY})
set(internal ${exported})
set(inside "zkasio::([a-z]+_)?detail::")
list(FILTER internal INCLUDE REGEX
    "^[0-9a-f]+ [A-Za-z] (${inside}[^ &*>]*([(<]|$)|(vtable|typeinfo|typeinfo name|guard variable) for ${inside})")
# Except what templates in public headers call, and what zkasio::testing needs.
file(GLOB_RECURSE headers ${PROJECT_DIR}/lib/*.hpp)
list(FILTER headers EXCLUDE REGEX "/lib/zkasio/(.*/)?detail/")
list(APPEND headers ${PROJECT_DIR}/lib/zkasio/detail/handles/testing_seam.hpp)
foreach(header ${headers})
    file(READ ${header} text)
    string(REGEX MATCHALL "ZKASIO_EXPORT [^;{}(]*[(]" marked "${text}")
    foreach(function ${marked})
        string(REGEX MATCH "([a-z_]+)[(]$" function "${function}")
        list(FILTER internal EXCLUDE REGEX "${inside}([a-z_]+::)?${CMAKE_MATCH_1}([(]|,abi:cxx11,[(])")
    endforeach()
endforeach()
if(internal)
    list(JOIN internal "\n" internal)
    message(FATAL_ERROR "exported, although it is not public:\n${internal}")
endif()
if(CAUGHT AND NOT exported MATCHES "typeinfo for ${CAUGHT}")
    message(FATAL_ERROR "the typeinfo of ${CAUGHT} is not exported: whoever catches it may not recognize it")
endif()

# Nothing of others, either, but what cmake/exports.map leaves on purpose: all of Asio, and what the compiler identifies
# types by.
symbols(foreign -D ${SHARED_LIBRARY})
list(FILTER foreign EXCLUDE REGEX " (asio_|_Z(GV|Z|T[hv][n0-9_]+|T[ISVHW])*N?K?(6zkasio|4asio|[0-9]+asio_))")
list(FILTER foreign EXCLUDE REGEX " [Vu] _Z(T[ISV]|GVZ|Z)")
if(ALSO)
    list(FILTER foreign EXCLUDE REGEX " T (${ALSO})$")
endif()
if(foreign)
    list(JOIN foreign "\n" foreign)
    message(FATAL_ERROR "exported, although it is neither zkasio's nor Asio's:\n${foreign}")
endif()

# Strong symbols outside of detail:: and of anonymous namespaces are public functions.
symbols(public ${STATIC_LIBRARY})
list(FILTER public INCLUDE REGEX "^[0-9a-f]+ T _ZNK?6zkasio")
list(FILTER public EXCLUDE REGEX "_ZNK?6zkasio[0-9]+([a-z]+_)?detail|_GLOBAL__N_|5Frame")
list(TRANSFORM public REPLACE ".* " "")
symbols(exported -D ${SHARED_LIBRARY})
list(TRANSFORM exported REPLACE ".* " "")
list(LENGTH public found)
if(found LESS LEAST)
    message(FATAL_ERROR "only ${found} public functions in ${STATIC_LIBRARY}: this test looks at the wrong thing")
endif()
list(REMOVE_ITEM public ${exported})
if(public)
    list(JOIN public "\n" public)
    message(FATAL_ERROR "not exported, although it is public (ZKASIO_EXPORT is missing):\n${public}")
endif()
