# SPDX-License-Identifier: Apache-2.0
# What the manifest says of a suite: included by manifest_test.cmake and regenerate_golden.cmake.

# Sets `line` to "SUITE CASES DIGEST" of the corpus in that file, which is generated if it is not there.
function(manifest_line qkcts suite file)
  if(NOT EXISTS "${file}")
    execute_process(COMMAND "${qkcts}" generate ${suite} -o "${file}"
      OUTPUT_QUIET ERROR_VARIABLE error RESULT_VARIABLE rc)
    if(NOT rc EQUAL 0)
      message(FATAL_ERROR "qkcts generate ${suite}: ${rc}\n${error}")
    endif()
  endif()
  execute_process(COMMAND "${qkcts}" inspect "${file}" OUTPUT_VARIABLE output ERROR_VARIABLE error RESULT_VARIABLE rc)
  if(NOT rc EQUAL 0 OR NOT output MATCHES "suite ${suite},.* ([0-9]+) cases?,.*\n  digest ([0-9a-f]+)\n")
    message(FATAL_ERROR "qkcts inspect ${file}: ${rc}\n${output}${error}")
  endif()
  set(line "${suite} ${CMAKE_MATCH_1} ${CMAKE_MATCH_2}" PARENT_SCOPE)
endfunction()
