# SPDX-License-Identifier: Apache-2.0
# Three processes share a plan: cmake -DMPIRUN= -DQKCTS= -DCORPUS=smoke.h5 -DFOLDER= -P ranks_test.cmake
set(folder "${FOLDER}/ranks_test")
file(REMOVE_RECURSE "${folder}")
file(MAKE_DIRECTORY "${folder}")

function(ranks code pattern)
  execute_process(COMMAND "${MPIRUN}" --oversubscribe --allow-run-as-root -n 3 "${QKCTS}" ${ARGN}
    OUTPUT_VARIABLE output ERROR_VARIABLE error RESULT_VARIABLE rc TIMEOUT 300)
  if(NOT rc EQUAL code OR NOT "${output}${error}" MATCHES "${pattern}")
    string(JOIN " " arguments ${ARGN})
    message(FATAL_ERROR "3 x qkcts ${arguments}: ${rc}, expected ${code} and \"${pattern}\":\n${output}${error}")
  endif()
  set(said "${output}${error}" PARENT_SCOPE)
endfunction()

function(expect_files)
  file(GLOB found RELATIVE "${folder}" "${folder}/*")
  if(NOT found STREQUAL "${ARGN}")
    message(FATAL_ERROR "in ${folder} lie ${found}, expected ${ARGN}")
  endif()
endfunction()

# One error, however many processes meet it.
function(expect_one_error)
  string(REGEX MATCHALL "(^|\n)qkcts: " errors "${said}")
  list(LENGTH errors count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "${count} errors:\n${said}")
  endif()
endfunction()

ranks(3 "qkcts: process 1 of 3: there is no suite smokee" generate smokee -o "${folder}/a.h5")
expect_one_error()
ranks(2 "shard is given by mpirun" generate smoke --shard 1/3 -o "${folder}/a.h5")
# The second process alone cannot write: its file is a folder.
file(MAKE_DIRECTORY "${folder}/a.2of3.h5")
ranks(6 "qkcts: process 2 of 3: [^\n]*a.2of3.h5: is a folder" generate smoke -o "${folder}/a.h5")
expect_one_error()
file(REMOVE_RECURSE "${folder}/a.2of3.h5")
if(EXISTS "${folder}/a.h5")
  message(FATAL_ERROR "a file was joined from two of three shards")
endif()
file(GLOB left "${folder}/*.partial.*" "${folder}/*.part")
if(left)
  message(FATAL_ERROR "unfinished files are left: ${left}")
endif()
file(REMOVE "${folder}/a.1of3.h5" "${folder}/a.3of3.h5")

ranks(0 "[1-9][0-9]* cases in 3 files" generate smoke -o "${folder}/a.h5" --resume)
expect_files(a.1of3.h5 a.2of3.h5 a.3of3.h5 a.h5)
execute_process(COMMAND "${QKCTS}" vectors diff "${CORPUS}" "${folder}/a.h5"
  OUTPUT_VARIABLE output ERROR_VARIABLE error RESULT_VARIABLE rc)
if(NOT rc EQUAL 0)
  message(FATAL_ERROR "the joined corpus says something else (${rc}):\n${output}${error}")
endif()
file(REMOVE_RECURSE "${folder}")
