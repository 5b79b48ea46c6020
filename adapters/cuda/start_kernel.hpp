// SPDX-License-Identifier: Apache-2.0
// A grid of blocks of 128 threads on the device, by name in errors.
#pragma once

#include <string>

#include "adapters/cuda/device.hpp"
#include "adapters/cuda/platform.hpp"
#ifdef __CUDACC__
#include "adapters/cuda/cuda_check.hpp"
#endif

namespace qkcts::cuda {

// Throws Unavailable where the driver cannot make anything of the code in this build.
template <class Kernel>
void load_kernel([[maybe_unused]] const char* name, [[maybe_unused]] Kernel kernel) {
#ifdef __CUDACC__
  cudaFuncAttributes attributes{};
  check_cuda(cudaFuncGetAttributes(&attributes, kernel), std::string("loading kernel ") + name);
#endif
}

template <class Kernel, class... Arguments>
void start_kernel(Device& device, const char* name, Kernel kernel, const Grid& grid, std::size_t shared_bytes,
                  const Arguments&... arguments) {
  constexpr std::int64_t most_x = 0x7fffffff, most_yz = 65535;
  if (grid.x > most_x || grid.y > most_yz || grid.z > most_yz)
    throw DeviceError(std::string(name) + ": more blocks than a grid may have");
#ifdef __CUDACC__
  const std::string what = std::string("kernel ") + name;
  // A property of the kernel, not of this launch: all states set the same, so that none lowers it under another's feet.
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(device.shared_memory())),
             what);
  const dim3 blocks(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z));
  kernel<<<blocks, block_threads, shared_bytes, static_cast<cudaStream_t>(device.stream())>>>(arguments...);
  check_cuda(cudaGetLastError(), what);
#else
  run_grid(grid, shared_bytes, device.settings().executor, [&] { kernel(arguments...); });
#endif
}

}  // namespace qkcts::cuda
