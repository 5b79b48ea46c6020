// SPDX-License-Identifier: Apache-2.0
// Starts the kernels of one call. launches.cpp is compiled by nvcc for the GPU and by the C++ compiler for the
// executor.
#pragma once

#include "adapters/cuda/device.hpp"
#include "adapters/cuda/problem.hpp"
#include "adapters/cuda/unit_tiles.hpp"

namespace qkcts::cuda {

// Asks for code of one kernel: all are built for the same architectures.
void load_kernels();

// Projection, norm and rotation of one side, as far as the contract has them.
void launch_vectors(Device& device, const Problem& problem, Side which);
// Operands of the matrix unit.
void launch_operands(Device& device, const Problem& problem, Side which);
void launch_attention(Device& device, const Problem& problem, bool on_unit);
// Output, log-sum-exp and weights.
void launch_rows(Device& device, const Problem& problem);

// `count`, a multiple of 4, single tiles of the matrix unit.
void launch_tiles(Device& device, bool is_bfloat16, const UnitTiles& tiles, std::int64_t count);

// Does the tile of the matrix unit's kernel fit into the shared memory of a block?
bool fits_unit(const Problem& problem, std::int64_t shared_memory);

}  // namespace qkcts::cuda
