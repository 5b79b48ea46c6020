// SPDX-License-Identifier: Apache-2.0
// The words in which the kernels are written. nvcc reads them as CUDA, a C++ compiler as calls of the block executor,
// so that one source is both what runs on a GPU and what is tested without one.
//
// Kernels are compiled without contraction (nvcc -fmad=false, -ffp-contract=off): what is fused is written as fma(), so
// that both sides round at the same places. What may differ is the elementary functions and the order of the matrix
// unit's sums.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#include "adapters/cuda/platform_device.hpp"
#else
#include "adapters/cuda/executor/platform_host.hpp"
#endif

namespace qkcts::cuda {

constexpr int block_threads = 128;  // of every kernel
constexpr int warp_threads = 32;
constexpr int block_warps = block_threads / warp_threads;

}  // namespace qkcts::cuda
