# SPDX-License-Identifier: Apache-2.0
# cmake -DBUILD=<build folder> -DSOURCE=<this folder> -DWORK=<scratch> -DC_COMPILER=<cc> -DGENERATOR=<of CMake>
#       [-DPROGRAM=<qkcts>] -P consumer_test.cmake
# Installs the SDK, builds an outside project against it, and runs what it built through the program.
cmake_minimum_required(VERSION 3.25)

function(require_success what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what}: ${result}\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
require_success("install" "${CMAKE_COMMAND}" --install "${BUILD}" --component sdk --prefix "${WORK}/prefix")
require_success("configure" "${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${SOURCE}" -B "${WORK}/build" "-DCMAKE_PREFIX_PATH=${WORK}/prefix"
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=${C_COMPILER})
require_success("build" "${CMAKE_COMMAND}" --build "${WORK}/build")

if(NOT PROGRAM)
  return()
endif()
require_success("generate" "${PROGRAM}" generate smoke -o "${WORK}/smoke.h5")

# Exit code 0: at least one case passed, none failed, all others are declared unsupported.
function(run_adapter library expected_code)
  execute_process(COMMAND "${PROGRAM}" run "${WORK}/build/${library}" "${WORK}/smoke.h5" -o "${WORK}/report"
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL expected_code)
    message(FATAL_ERROR "run ${library}: exit code ${result}, not ${expected_code}\n${output}")
  endif()
  file(READ "${WORK}/report/run.json" record)
  string(JSON cases LENGTH "${record}" cases)
  set(pass 0)
  set(unsupported 0)
  math(EXPR last "${cases} - 1")
  foreach(i RANGE ${last})
    string(JSON verdict GET "${record}" cases ${i} verdict)
    if(verdict STREQUAL "pass")
      math(EXPR pass "${pass} + 1")
    elseif(verdict STREQUAL "unsupported")
      math(EXPR unsupported "${unsupported} + 1")
    else()
      message(FATAL_ERROR "run ${library}: case ${i} is ${verdict}\n${output}")
    endif()
  endforeach()
  message(STATUS "${library}: ${pass} pass, ${unsupported} unsupported")
  set(pass ${pass} PARENT_SCOPE)
  set(unsupported ${unsupported} PARENT_SCOPE)
endfunction()

run_adapter(libmine.so 0)
if(pass EQUAL 0 OR unsupported EQUAL 0)
  message(FATAL_ERROR "libmine.so passed ${pass} cases and was unsupported in ${unsupported}: neither may be 0")
endif()
run_adapter(libcopied.so 5)
if(NOT pass EQUAL 0)
  message(FATAL_ERROR "the template has no kernel, and passed ${pass} cases")
endif()
