// SPDX-License-Identifier: Apache-2.0
// d = c + a b of single tiles m16n8k16, one warp each: what the matrix unit does, with nothing around it.
#pragma once

#include "adapters/cuda/element.hpp"

namespace qkcts::cuda {

struct UnitTiles {
  const std::uint16_t* a;  // [count, 16, 16], row and k
  const std::uint16_t* b;  // [count, 8, 16], column and k
  const float* c;          // [count, 16, 8]
  float* d;                // [count, 16, 8]
};

QKCTS_DEVICE std::uint32_t neighbours(const std::uint16_t* at) {
  return std::uint32_t{at[1]} << 16 | at[0];
}

template <bool is_bfloat16>
QKCTS_KERNEL multiply_tiles(UnitTiles tiles) {
  const std::int64_t tile = block_x() * block_warps + thread_index() / warp_threads;
  const int g = thread_index() % warp_threads / 4, t = thread_index() % 4 * 2;
  const std::uint16_t* a = tiles.a + tile * 256;
  const std::uint16_t* b = tiles.b + tile * 128 + g * 16;
  const std::uint32_t left[4] = {neighbours(a + g * 16 + t), neighbours(a + (g + 8) * 16 + t),
                                 neighbours(a + g * 16 + t + 8), neighbours(a + (g + 8) * 16 + t + 8)};
  const std::uint32_t right[2] = {neighbours(b + t), neighbours(b + t + 8)};
  float sum[4];
  QKCTS_UNROLL
  for (int i = 0; i < 4; ++i) sum[i] = tiles.c[tile * 128 + (g + i / 2 * 8) * 8 + t + i % 2];
  if constexpr (is_bfloat16) {
    multiply_bfloat16(sum, left, right);
  } else {
    multiply_binary16(sum, left, right);
  }
  QKCTS_UNROLL
  for (int i = 0; i < 4; ++i) tiles.d[tile * 128 + (g + i / 2 * 8) * 8 + t + i % 2] = sum[i];
}

}  // namespace qkcts::cuda
