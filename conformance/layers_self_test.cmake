# SPDX-License-Identifier: Apache-2.0
# cmake -DSCRATCH=<empty folder> -P layers_self_test.cmake
# layers_test.cmake accepts a tree that keeps the rule, and names each line of a tree that breaks it.
cmake_minimum_required(VERSION 3.25)

function(run_layers tree result output)
  execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${tree} -P ${CMAKE_CURRENT_LIST_DIR}/layers_test.cmake
                  RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  set(${result} ${status} PARENT_SCOPE)
  set(${output} "${text}" PARENT_SCOPE)
endfunction()

# path of the file -> its one include line
set(kept
  "conformance/json.hpp=<nlohmann/json.hpp>"
  "conformance/a.cpp=\"conformance/json.hpp\""
  "reference/b.cpp=\"conformance/a.hpp\""
  "vectors/generate_case.cpp=\"reference/b.hpp\""
  "harness/c_test.cpp=<gtest/gtest.h>"
  "harness/cli/verify.cpp=\"reference/b.hpp\""
  "harness/diagnose_stage.cpp=\"reference/b.hpp\""
  "adapters/one/kernel.cpp=\"adapters/one/kernel.hpp\""
  "adapters/one/adapter.c=<qkcts/adapter.h>"
  "adapters/mutants/a.cpp=\"adapters/scalar/a.hpp\""
  "adapters/one/kernel_test.cpp=\"adapters/sample.hpp\"")
set(broken
  "conformance/a.cpp=\"reference/b.hpp\""
  "conformance/b.cpp=<nlohmann/json.hpp>"
  "conformance/c.cpp=<valijson/validator.hpp>"
  "conformance/d.cpp=<openssl/evp.h>"
  "conformance/e.cpp=\"json.hpp\""
  "conformance/f.cpp=<conformance/json.hpp>"
  "reference/a.cpp=\"vectors/a.hpp\""
  "reference/b.cpp=<mpfr.h>"
  "reference/c.cpp=<gtest/gtest.h>"
  "vectors/a.cpp=\"reference/b.hpp\""
  "vectors/b.cpp=<hdf5.h>"
  "harness/a.cpp=\"reference/b.hpp\""
  "harness/b.cpp=<CLI/CLI.hpp>"
  "harness/c.cpp=<dlfcn.h>"
  "harness/d.cpp=<pugixml.hpp>"
  "adapters/one/a.cpp=\"adapters/two/a.hpp\""
  "adapters/one/b.cpp=\"conformance/a.hpp\""
  "adapters/one/c.cpp=<fmt/format.h>"
  "adapters/scalar/a.cpp=\"adapters/mutants/a.hpp\""
  "adapters/one/d.cpp=\"adapters/sample.hpp\""
  "adapters/sample.cpp=\"conformance/a.hpp\"")

foreach(kind IN ITEMS kept broken)
  file(REMOVE_RECURSE "${SCRATCH}/${kind}")
  foreach(entry IN LISTS ${kind})
    string(REGEX MATCH "^[^=]+" path "${entry}")
    string(REGEX REPLACE "^[^=]+=" "" target "${entry}")
    file(WRITE "${SCRATCH}/${kind}/${path}" "#include ${target}\n")
  endforeach()
endforeach()

run_layers("${SCRATCH}/kept" status text)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "a tree that keeps the rule was refused:\n${text}")
endif()
run_layers("${SCRATCH}/broken" status text)
if(status EQUAL 0)
  message(FATAL_ERROR "a tree that breaks the rule was accepted")
endif()
foreach(entry IN LISTS broken)
  string(REPLACE "=" ": " line "${entry}")
  string(FIND "${text}" "${line}" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "not caught: ${line}\n${text}")
  endif()
endforeach()
run_layers("${SCRATCH}/nothing" status text)
if(status EQUAL 0)
  message(FATAL_ERROR "a tree without files was accepted")
endif()
