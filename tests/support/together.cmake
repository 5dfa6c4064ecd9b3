# Read by ctest, with ZKASIO_TESTS_TOGETHER=N, in place of a test for each case: the cases of `program` that `spec`
# names, some N in a process, as tests "PREFIX part NUMBER". Under sanitizers a program takes a quarter of a second to
# begin, and there are thousands of cases. Neighbours go to different parts, so that each takes about as long.
set(parts_dir "${program}_parts")
file(REMOVE_RECURSE "${parts_dir}")
file(MAKE_DIRECTORY "${parts_dir}")
execute_process(COMMAND "${program}" --list-test-names-only ${spec} OUTPUT_FILE "${parts_dir}/names")
# As Catch2 reads them: a comma would end a name.
execute_process(COMMAND sed -i "s/[],[\\]/\\\\&/g" "${parts_dir}/names" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND wc -l INPUT_FILE "${parts_dir}/names" OUTPUT_VARIABLE count)
if(count EQUAL 0)
    add_test("${prefix}nothing to run" false)
    return()
endif()
math(EXPR count "(${count} + $ENV{ZKASIO_TESTS_TOGETHER} - 1) / $ENV{ZKASIO_TESTS_TOGETHER}")
execute_process(COMMAND split -n r/${count} -d -a 3 "${parts_dir}/names" "${parts_dir}/" COMMAND_ERROR_IS_FATAL ANY)
file(GLOB parts RELATIVE "${parts_dir}" "${parts_dir}/[0-9]*")
foreach(part IN LISTS parts)
    add_test("${prefix}part ${part}" "${program}" --input-file "${parts_dir}/${part}")
    set_tests_properties("${prefix}part ${part}" PROPERTIES
        FAIL_REGULAR_EXPRESSION "Invalid Filter;No test cases matched" ${properties})
endforeach()
