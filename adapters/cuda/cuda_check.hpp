// SPDX-License-Identifier: Apache-2.0
// Every call of the CUDA runtime goes through here; its error becomes a message.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "adapters/cuda/device.hpp"

namespace qkcts::cuda {

inline void check_cuda(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) return;
  const std::string text = what + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")";
  if (error == cudaErrorMemoryAllocation) throw OutOfMemory(text);
  throw DeviceError(text);
}

}  // namespace qkcts::cuda
