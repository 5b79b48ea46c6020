# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM=qkcts -DHOST=libqkcts_cuda_host.so [-DDEVICE=libqkcts_cuda.so] -DCORPUS=smoke.h5 -DWORK=FOLDER -P ...
# certify_on_gpu.sh from requests to judged results, with the host executor in the place of the GPU's kernel; and what it
# leaves on a machine without a device, which must not be results.
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}/carried/bin" "${WORK}/carried/lib/qkcts")
file(CREATE_LINK "${PROGRAM}" "${WORK}/carried/bin/qkcts" SYMBOLIC)
file(COPY "${CMAKE_CURRENT_LIST_DIR}/certify_on_gpu.sh" DESTINATION "${WORK}/carried")

function(must_end_with wanted)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT code STREQUAL "${wanted}")
    message(FATAL_ERROR "${ARGN}: exit code ${code} in place of ${wanted}\n${said}")
  endif()
  set(said "${said}" PARENT_SCOPE)
endfunction()

set(script "${WORK}/carried/certify_on_gpu.sh")
must_end_with(2 sh "${script}")
must_end_with(2 sh "${script}" "${WORK}/early")  # neither a kernel nor its source
file(CREATE_LINK "${HOST}" "${WORK}/carried/lib/qkcts/libqkcts_cuda.so" SYMBOLIC)
must_end_with(2 sh "${script}" "${WORK}/early")  # no requests
must_end_with(0 "${PROGRAM}" export "${CORPUS}" -o "${WORK}/carried/requests_smoke.h5")
must_end_with(0 sh "${script}" "${WORK}/out")
must_end_with(0 "${PROGRAM}" check "${CORPUS}" "${WORK}/out/results_smoke.h5")
if(NOT said MATCHES "13 pass")
  message(FATAL_ERROR "not all cases passed:\n${said}")
endif()

if(DEVICE)
  file(REMOVE "${WORK}/carried/lib/qkcts/libqkcts_cuda.so")
  file(CREATE_LINK "${DEVICE}" "${WORK}/carried/lib/qkcts/libqkcts_cuda.so" SYMBOLIC)
  execute_process(COMMAND "${PROGRAM}" run "${DEVICE}" "${CORPUS}" RESULT_VARIABLE probed OUTPUT_QUIET ERROR_QUIET)
  if(probed EQUAL 5)
    must_end_with(5 sh "${script}" "${WORK}/out_without_device")
    file(GLOB left "${WORK}/out_without_device/results*.h5")
    if(left)
      message(FATAL_ERROR "no device, and yet there is ${left}")
    endif()
  endif()
endif()
