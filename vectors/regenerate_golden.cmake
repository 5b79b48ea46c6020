# SPDX-License-Identifier: Apache-2.0
# Writes golden/manifest.txt and golden/smoke.h5 anew:
# cmake -DQKCTS= -DGOLDEN= -DFOLDER= -DSUITES=a,b -P regenerate_golden.cmake
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/golden_suites.cmake")
set(text "# suite, cases, logical digest (docs/vector_format.md). `qkcts generate SUITE -o FILE` prints both.\n")
string(REPLACE "," ";" suites "${SUITES}")
foreach(suite IN LISTS suites)
  set(file "${FOLDER}/golden_${suite}.h5")
  file(REMOVE "${file}")
  manifest_line("${QKCTS}" "${suite}" "${file}")
  message("${line}")
  string(APPEND text "${line}\n")
  if(suite STREQUAL "smoke")
    file(COPY_FILE "${file}" "${GOLDEN}/smoke.h5")
  endif()
  file(REMOVE "${file}")
endforeach()
file(WRITE "${GOLDEN}/manifest.txt" "${text}")
