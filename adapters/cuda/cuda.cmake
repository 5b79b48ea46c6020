# SPDX-License-Identifier: Apache-2.0
# The kernel for NVIDIA GPUs, and the same source on the host executor. Included by adapters/CMakeLists.txt.
set(QKCTS_CUDA AUTO CACHE STRING
  "Bundled CUDA kernel: AUTO builds it where nvcc is found, ON requires it, OFF leaves it out; the host executor is always there")
set_property(CACHE QKCTS_CUDA PROPERTY STRINGS AUTO ON OFF)
set(cuda "${CMAKE_CURRENT_SOURCE_DIR}/cuda")

# What both have; then the host executor.
set(cuda_sources cuda/call.cpp cuda/call_binding.cpp cuda/description.cpp cuda/device_choice.cpp cuda/device_memory.cpp
  cuda/host_tensor.cpp cuda/scale.cpp cuda/settings.cpp)
set(cuda_executor_sources cuda/executor/block_executor.cpp cuda/executor/fibre_schedule.cpp
  cuda/executor/fibre_switch.cpp cuda/executor/matrix_unit.cpp cuda/executor/thread_schedule.cpp)
set(cuda_host_sources ${cuda_sources} ${cuda_executor_sources} cuda/device_host.cpp cuda/launches.cpp
  cuda/unit_probe.cpp)
add_library(qkcts_cuda_host_kernel STATIC ${cuda_host_sources})
target_link_libraries(qkcts_cuda_host_kernel PUBLIC qkcts::adapter_sdk Threads::Threads)
target_include_directories(qkcts_cuda_host_kernel PUBLIC "${PROJECT_SOURCE_DIR}")
set_target_properties(qkcts_cuda_host_kernel PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
qkcts_add_adapter(cuda_host cuda/adapter.cpp)
target_link_libraries(qkcts_cuda_host PRIVATE qkcts_cuda_host_kernel)

# The device. Code for it cannot be instrumented, so builds with sanitizers have the executor only, and builds for another
# processor too, for which this machine's toolkit has no runtime.
set(QKCTS_CUDA_BUILT OFF)
if(QKCTS_CUDA STREQUAL "ON" OR (QKCTS_CUDA STREQUAL "AUTO" AND NOT QKCTS_SANITIZE AND NOT CMAKE_CROSSCOMPILING))
  find_program(QKCTS_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  set(missing "no nvcc was found; set QKCTS_NVCC or CUDA_HOME")
  if(QKCTS_NVCC)
    execute_process(COMMAND "${QKCTS_NVCC}" --version OUTPUT_VARIABLE said ERROR_QUIET)
    string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" found "${said}")
    set(QKCTS_NVCC_VERSION "${CMAKE_MATCH_1}")
    get_filename_component(toolkit "${QKCTS_NVCC}" REALPATH)
    get_filename_component(toolkit "${toolkit}" DIRECTORY)
    find_library(QKCTS_CUDART cudart_static HINTS "${toolkit}/.." PATH_SUFFIXES lib64 lib targets/x86_64-linux/lib
      targets/sbsa-linux/lib)
    if(QKCTS_NVCC_VERSION VERSION_LESS 12.0)
      set(missing "${QKCTS_NVCC} is release ${QKCTS_NVCC_VERSION}, and 12.0 is the first that knows C++20")
    elseif(NOT QKCTS_CUDART)
      set(missing "${QKCTS_NVCC} is there, but no libcudart_static.a beside it; set QKCTS_CUDART")
    else()
      set(QKCTS_CUDA_BUILT ON)
    endif()
  endif()
  if(NOT QKCTS_CUDA_BUILT AND QKCTS_CUDA STREQUAL "ON")
    message(FATAL_ERROR "QKCTS_CUDA=ON, but ${missing}")
  elseif(NOT QKCTS_CUDA_BUILT)
    message(STATUS "CUDA kernel for GPUs left out: ${missing}")
  endif()
endif()

if(QKCTS_CUDA_BUILT)
  # The kernels: binaries for sm_80 and sm_90, and PTX for what comes later. What nvcc says of their resources is kept.
  # device_choice.cpp is told the same numbers, and a card without code is "not run".
  set(cuda_binaries 80 90)
  set(cuda_ptx 90)
  set(cuda_code)
  foreach(number IN LISTS cuda_binaries)
    list(APPEND cuda_code "-gencode=arch=compute_${number},code=sm_${number}")
  endforeach()
  foreach(number IN LISTS cuda_ptx)
    list(APPEND cuda_code "-gencode=arch=compute_${number},code=compute_${number}")
  endforeach()
  set(cuda_launches "${CMAKE_CURRENT_BINARY_DIR}/cuda/launches.o")
  set(cuda_resources "${CMAKE_CURRENT_BINARY_DIR}/cuda/launches.resources")
  set(options -std=c++20 -O3 -x cu --expt-relaxed-constexpr -fmad=false -Xptxas=-v
    ${cuda_code}
    -Xcompiler=-fPIC,-fvisibility=hidden,-Wall,-Wextra
    "-I${PROJECT_SOURCE_DIR}" "-I${PROJECT_SOURCE_DIR}/conformance/include" "-I${CMAKE_CURRENT_SOURCE_DIR}/include")
  if(QKCTS_WERROR)
    list(APPEND options -Werror=all-warnings)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND options "-ccbin=${CMAKE_CXX_COMPILER}")
  endif()
  set(command "${QKCTS_NVCC}" ${options} -MD -MF "${cuda_launches}.d" -MT "${cuda_launches}"
    -c "${cuda}/launches.cpp" -o "${cuda_launches}")
  file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/cuda")
  add_custom_command(OUTPUT "${cuda_launches}" BYPRODUCTS "${cuda_resources}"
    COMMAND "${CMAKE_COMMAND}" "-DREPORT=${cuda_resources}" "-DCOMMAND=${command}" -P "${cuda}/compile.cmake"
    DEPENDS "${cuda}/launches.cpp" "${cuda}/compile.cmake" DEPFILE "${cuda_launches}.d" VERBATIM
    COMMENT "nvcc launches.cpp")
  add_custom_target(qkcts_cuda_device_code DEPENDS "${cuda_launches}")
  get_filename_component(cuda_headers "${toolkit}/../include" ABSOLUTE)
  add_library(qkcts_cuda_kernel STATIC ${cuda_sources} cuda/cuda_check.cpp cuda/device_cuda.cpp)
  list(JOIN cuda_binaries "," binaries)
  list(JOIN cuda_ptx "," ptx)
  set_source_files_properties(cuda/device_cuda.cpp PROPERTIES
    COMPILE_DEFINITIONS "QKCTS_CUDA_BINARIES=${binaries};QKCTS_CUDA_PTX=${ptx}")
  add_dependencies(qkcts_cuda_kernel qkcts_cuda_device_code)
  target_include_directories(qkcts_cuda_kernel PUBLIC "${PROJECT_SOURCE_DIR}")
  target_include_directories(qkcts_cuda_kernel SYSTEM PUBLIC "${cuda_headers}")
  set_target_properties(qkcts_cuda_kernel PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  # The runtime is linked in: the library loads where there is no driver, and probe() can say so.
  target_link_libraries(qkcts_cuda_kernel PUBLIC qkcts::adapter_sdk "${cuda_launches}" "${QKCTS_CUDART}" Threads::Threads
    ${CMAKE_DL_LIBS} rt)
  qkcts_add_adapter(cuda cuda/adapter.cpp)
  target_link_libraries(qkcts_cuda PRIVATE qkcts_cuda_kernel)
  # For certify_on_gpu.sh: times of the kernels, and what the matrix unit does, which is compared with the executor's.
  add_executable(cuda_time cuda/gpu_time.cpp)
  target_link_libraries(cuda_time PRIVATE qkcts_cuda_kernel)
  add_executable(cuda_unit cuda/unit_probe.cpp cuda/unit_program.cpp ${cuda_executor_sources})
  target_link_libraries(cuda_unit PRIVATE qkcts_cuda_kernel)
endif()

if(QKCTS_TESTS)
  add_library(qkcts_cuda_host_entry OBJECT cuda/adapter.cpp)
  target_link_libraries(qkcts_cuda_host_entry PUBLIC qkcts::adapter_sdk)
  target_include_directories(qkcts_cuda_host_entry PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(qkcts_cuda_host_entry PRIVATE qkcts_adapter=qkcts_adapter_cuda_host)
  set(cuda_samples plain_attention.cpp plain_vectors.cpp sample_case.cpp sample_contract.cpp sample_inputs.cpp
    sample_tensor.cpp)
  add_executable(cuda_tests cuda/executor/block_executor_test.cpp cuda/executor/matrix_unit_test.cpp
    cuda/device_choice_test.cpp cuda/kernel_test.cpp cuda/shared_memory_test.cpp cuda/unit_probe_test.cpp
    stage_check.cpp ${cuda_samples})
  target_link_libraries(cuda_tests PRIVATE qkcts_cuda_host_entry qkcts_cuda_host_kernel GTest::gtest GTest::gtest_main)
  set_source_files_properties(cuda/shared_memory_test.cpp PROPERTIES
    COMPILE_DEFINITIONS "QKCTS_CUDA_DOCUMENT=\"${PROJECT_SOURCE_DIR}/docs/cuda.md\"")
  gtest_discover_tests(cuda_tests TEST_PREFIX cuda. DISCOVERY_TIMEOUT 60 PROPERTIES LABELS unit TIMEOUT 300)

  # Judged like any adapter: parts of core, edge and robust here, and with --full all of them, also without the matrix
  # unit, and with that of a V100 (which cuts off most) and the threads in reverse order.
  add_test(NAME cuda.smoke COMMAND qkcts run cuda_host "${PROJECT_SOURCE_DIR}/vectors/golden/smoke.h5")
  add_test(NAME cuda.core_clauses COMMAND qkcts run cuda_host "${core_corpus}" --variants none --case "clause_*")
  add_test(NAME cuda.core_softcap COMMAND qkcts run cuda_host "${core_corpus}" --variants none --case "*softcap/*")
  foreach(suite edge robust)
    set(part "${CMAKE_CURRENT_BINARY_DIR}/cuda_${suite}_part.h5")
    add_test(NAME cuda.generate_${suite}_part COMMAND qkcts generate ${suite} --shard 2/12 -o "${part}")
    set_tests_properties(cuda.generate_${suite}_part PROPERTIES FIXTURES_SETUP cuda_${suite}_part LABELS golden)
    add_test(NAME cuda.${suite}_part COMMAND qkcts run cuda_host "${part}")
    set_tests_properties(cuda.${suite}_part PROPERTIES FIXTURES_REQUIRED cuda_${suite}_part LABELS golden TIMEOUT 300)
  endforeach()
  # Four seconds: what no golden value shows, above all that a row does not depend on what stands beside it.
  add_test(NAME cuda.relations COMMAND qkcts run cuda_host "${relations_corpus}" --relations-only)
  set_tests_properties(cuda.relations PROPERTIES LABELS golden FIXTURES_REQUIRED relations_corpus TIMEOUT 300)
  set_tests_properties(cuda.smoke cuda.core_clauses cuda.core_softcap PROPERTIES LABELS golden TIMEOUT 300)
  set_tests_properties(cuda.core_clauses cuda.core_softcap PROPERTIES FIXTURES_REQUIRED core_corpus)
  foreach(suite core edge robust)
    set(corpus "${${suite}_whole}")
    set(fixture whole_${suite}_corpus)
    if(suite STREQUAL "core")
      set(corpus "${core_corpus}")
      set(fixture core_corpus)
    endif()
    add_test(NAME cuda.${suite} COMMAND qkcts run cuda_host "${corpus}")
    add_test(NAME cuda.${suite}_plain COMMAND qkcts run "cuda_host?path=plain" "${corpus}" --variants none)
    add_test(NAME cuda.${suite}_v100 COMMAND qkcts run "cuda_host?unit=v100,threads=backwards" "${corpus}"
      --variants none)
    set_tests_properties(cuda.${suite} cuda.${suite}_plain cuda.${suite}_v100 PROPERTIES LABELS "golden;soak"
      FIXTURES_REQUIRED ${fixture} TIMEOUT 1800)
  endforeach()

  # Every barrier is needed: without it ThreadSanitizer reports a race (or that poison was taken for an index), with all
  # of them nothing.
  if(NOT QKCTS_SANITIZE AND NOT QKCTS_FUZZ)
    add_executable(cuda_race cuda/race_test.cpp cuda/adapter.cpp ${cuda_host_sources} ${cuda_samples})
    target_compile_definitions(cuda_race PRIVATE qkcts_adapter=qkcts_adapter_cuda_host)
    target_compile_options(cuda_race PRIVATE -O1 -fsanitize=thread)
    target_link_options(cuda_race PRIVATE -fsanitize=thread)
    target_link_libraries(cuda_race PRIVATE qkcts::adapter_sdk Threads::Threads)
    target_include_directories(cuda_race PRIVATE "${PROJECT_SOURCE_DIR}")
    foreach(barrier sum_is_read sum_is_written row_is_written turn_begins turn_ends rows_are_set tile_is_read
            tile_is_written weights_are_set copies_are_there copies_are_read)
      add_test(NAME cuda.race_without_${barrier} COMMAND cuda_race ${barrier})
      set_tests_properties(cuda.race_without_${barrier} PROPERTIES LABELS mutant TIMEOUT 300
        PASS_REGULAR_EXPRESSION "ThreadSanitizer: (data race|SEGV)" ENVIRONMENT "TSAN_OPTIONS=halt_on_error=1")
    endforeach()
    # What is found only after all rows were prepared takes seconds; one of each kernel is enough for every day.
    foreach(barrier rows_are_set tile_is_read weights_are_set copies_are_read)
      set_tests_properties(cuda.race_without_${barrier} PROPERTIES LABELS "mutant;soak")
    endforeach()
    add_test(NAME cuda.no_race COMMAND cuda_race none)
    set_tests_properties(cuda.no_race PROPERTIES LABELS mutant TIMEOUT 300
      PASS_REGULAR_EXPRESSION "to the end, barrier left out: none" FAIL_REGULAR_EXPRESSION "ThreadSanitizer")
  endif()

  add_test(NAME cuda.certify COMMAND "${CMAKE_COMMAND}" "-DPROGRAM=$<TARGET_FILE:qkcts>"
    "-DHOST=$<TARGET_FILE:qkcts_cuda_host>" "-DCORPUS=${PROJECT_SOURCE_DIR}/vectors/golden/smoke.h5"
    "-DWORK=${CMAKE_CURRENT_BINARY_DIR}/cuda_certify" "$<$<BOOL:${QKCTS_CUDA_BUILT}>:-DDEVICE=${PROJECT_BINARY_DIR}/lib/libqkcts_cuda.so>"
    -P "${cuda}/certify_test.cmake" COMMAND_EXPAND_LISTS)
  set_tests_properties(cuda.certify PROPERTIES LABELS golden TIMEOUT 300)
  if(QKCTS_CUDA_BUILT)
    add_executable(cuda_check_tests cuda/cuda_check_test.cpp)
    target_link_libraries(cuda_check_tests PRIVATE qkcts_cuda_kernel GTest::gtest GTest::gtest_main)
    gtest_discover_tests(cuda_check_tests TEST_PREFIX cuda. DISCOVERY_TIMEOUT 60 PROPERTIES LABELS unit)
    add_test(NAME cuda.resources COMMAND "${CMAKE_COMMAND}" "-DREPORT=${cuda_resources}"
      "-DVERSION=${QKCTS_NVCC_VERSION}" "-DDOCUMENT=${PROJECT_SOURCE_DIR}/docs/cuda.md" -P "${cuda}/resources_test.cmake")
    # A machine without a device is never a pass: it says so, with exit code 5; one with a device judges.
    add_test(NAME cuda.probe COMMAND "${CMAKE_COMMAND}" "-DPROGRAM=$<TARGET_FILE:qkcts>" "-DCORPUS=${PROJECT_SOURCE_DIR}/vectors/golden/smoke.h5"
      -P "${cuda}/probe_test.cmake")
    set_tests_properties(cuda.resources cuda.probe PROPERTIES LABELS unit)
  endif()
endif()
