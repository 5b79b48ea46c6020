// SPDX-License-Identifier: Apache-2.0
// Sums over the threads of a block, in an order that depends on nothing: a tree in each warp, then the warps in turn.
#pragma once

#include "adapters/cuda/platform.hpp"

namespace qkcts::cuda {

// `partial` is shared memory for one number per warp.
template <class Real>
QKCTS_DEVICE Real block_sum(Real value, Real* partial) {
  for (int lanes = warp_threads / 2; lanes > 0; lanes /= 2) value += shuffle_xor(value, lanes);
  sync_block(Barrier::sum_is_read);
  if (thread_index() % warp_threads == 0) partial[thread_index() / warp_threads] = value;
  sync_block(Barrier::sum_is_written);
  Real sum = 0;
  for (int warp = 0; warp < block_warps; ++warp) sum += partial[warp];
  return sum;
}

}  // namespace qkcts::cuda
