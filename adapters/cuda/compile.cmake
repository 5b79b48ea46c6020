# SPDX-License-Identifier: Apache-2.0
# cmake -DOUTPUT=FILE.o -DREPORT=FILE "-DCOMMAND=nvcc;..." -P compile.cmake
# Runs nvcc and keeps what it says (the resources of every kernel); shows it where the compilation fails.
execute_process(COMMAND ${COMMAND} RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
file(WRITE "${REPORT}" "${said}")
if(NOT result EQUAL 0)
  message(FATAL_ERROR "nvcc failed:\n${said}")
endif()
