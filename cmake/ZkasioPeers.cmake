# Programs that use other libraries' locks: for the interop tests and for the benchmarks.
#
# Sets ZKASIO_PEERS to those of curator, gozk, kazoo that can be built here, and ZKASIO_MISSING_PEERS to a text about
# the others.
include_guard(DIRECTORY)

find_program(ZKASIO_JAVA java)
find_program(ZKASIO_JAVAC javac)
find_program(ZKASIO_GO go)
# Debian's packages for Python belong to Debian's Python.
find_program(ZKASIO_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
# Its manifest names all other jars that it needs.
find_file(ZKASIO_CURATOR_JAR curator-recipes.jar PATHS /usr/share/java NO_DEFAULT_PATH)
find_file(ZKASIO_CURATOR_DISCOVERY_JAR curator-x-discovery.jar PATHS /usr/share/java NO_DEFAULT_PATH)
find_file(ZKASIO_SLF4J_JAR slf4j-nop.jar PATHS /usr/share/java NO_DEFAULT_PATH)
find_path(ZKASIO_GOPATH src/github.com/samuel/go-zookeeper/zk/lock.go PATHS /usr/share/gocode NO_DEFAULT_PATH)

set(ZKASIO_PEERS "")
set(ZKASIO_MISSING_PEERS "")
if(ZKASIO_JAVA AND ZKASIO_JAVAC AND ZKASIO_CURATOR_JAR AND ZKASIO_SLF4J_JAR)
    list(APPEND ZKASIO_PEERS curator)
else()
    list(APPEND ZKASIO_MISSING_PEERS "Curator (default-jdk-headless libcurator-recipes-java)")
endif()
if(ZKASIO_GO AND ZKASIO_GOPATH)
    list(APPEND ZKASIO_PEERS gozk)
else()
    list(APPEND ZKASIO_MISSING_PEERS "go-zk (golang-go golang-github-samuel-go-zookeeper-dev)")
endif()
set(zkasio_no_kazoo 1)
if(ZKASIO_PYTHON)
    execute_process(COMMAND ${ZKASIO_PYTHON} -c "import kazoo.recipe.lock"
        RESULT_VARIABLE zkasio_no_kazoo OUTPUT_QUIET ERROR_QUIET)
endif()
if(zkasio_no_kazoo EQUAL 0)
    list(APPEND ZKASIO_PEERS kazoo)
else()
    list(APPEND ZKASIO_MISSING_PEERS "kazoo (python3-kazoo)")
endif()
list(JOIN ZKASIO_MISSING_PEERS ", " ZKASIO_MISSING_PEERS)

set(zkasio_launcher "${CMAKE_CURRENT_LIST_DIR}/peer_launcher.in")

# zkasio_peer(NAME SOURCE [JAVA_OPTIONS]) makes the program NAME in the current binary directory: one of ZKASIO_PEERS, or
# one of their other programs, curator-structures, kazoo-structures and curator-discovery (if there is a
# ZKASIO_CURATOR_DISCOVERY_JAR).
# SOURCE is a file of the current source directory, for Curator one that is called as its class. What has to be built
# for it is appended to `zkasio_peer_files`.
function(zkasio_peer name source)
    set(out ${CMAKE_CURRENT_BINARY_DIR})
    set(in ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    cmake_path(GET source STEM stem)
    if(name MATCHES "^curator")
        set(class_path ${ZKASIO_CURATOR_JAR}:${ZKASIO_SLF4J_JAR})
        if(name STREQUAL "curator-discovery")
            string(PREPEND class_path "${ZKASIO_CURATOR_DISCOVERY_JAR}:")
        endif()
        set(built ${out}/${stem}.class)
        add_custom_command(OUTPUT ${built}
            COMMAND ${ZKASIO_JAVAC} -nowarn -cp ${class_path} -d ${out} ${in}
            DEPENDS ${in} VERBATIM)
        set(command "\"${ZKASIO_JAVA}\" ${ARGN} -cp \"${out}:${class_path}\" ${stem}")
    elseif(name STREQUAL "gozk")
        set(built ${out}/${stem})
        add_custom_command(OUTPUT ${built}
            COMMAND ${CMAKE_COMMAND} -E env GOPATH=${ZKASIO_GOPATH} GO111MODULE=off GOFLAGS= GOCACHE=${out}/go-cache
                ${ZKASIO_GO} build -o ${built} ${in}
            DEPENDS ${in} VERBATIM)
        set(command "\"${built}\"")
    else()
        set(built "")
        set(command "\"${ZKASIO_PYTHON}\" \"${in}\"")
    endif()
    configure_file(${zkasio_launcher} ${name} @ONLY FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
        GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    set(zkasio_peer_files ${zkasio_peer_files} ${built} PARENT_SCOPE)
endfunction()
