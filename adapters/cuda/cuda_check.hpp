// SPDX-License-Identifier: Apache-2.0
// Every call of the CUDA runtime goes through here; its error becomes a message, and a status by its kind.
#pragma once

#include <cuda_runtime.h>

#include <string>

namespace qkcts::cuda {

// Of an error that CUDA says leaves the process without its device: every later call would report it again.
bool ends_the_context(cudaError_t error);

// Throws OutOfMemory, Unavailable (the driver and this build do not fit) or DeviceError.
void check_cuda(cudaError_t error, const std::string& what);

}  // namespace qkcts::cuda
