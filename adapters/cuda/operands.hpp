// SPDX-License-Identifier: Apache-2.0
// Operands of the matrix unit. A vector that is exact in its storage format is one part: its bits. What a norm or a
// rotation made is binary32, and rounding it to 16 bits would be a rounding that no contract asked for; it is written
// as a sum of three numbers of bfloat16, x = x1 + x2 + x3, each the nearest to what is left: 3 * 8 bits are all of
// binary32, so the sum is exact. The score is then the sum of six products, in which only those below 2^-25 |q||k| are
// missing (x2 y3, x3 y2 and x3 y3).
//
// That holds for "regular" vectors, entries 0 or 2^-40 <= |x| < 2^60: no part and no product of two parts underflows or
// overflows. Scores of others are formed in plain arithmetic, one by one; which path a score takes depends on its own
// two vectors and on nothing else.
#pragma once

#include "adapters/cuda/element.hpp"
#include "adapters/cuda/problem.hpp"

namespace qkcts::cuda {

constexpr int unit_depth = 16;  // lanes or keys of one product of the matrix unit
constexpr int split_parts = 3;

QKCTS_DEVICE bool is_regular(float x) {
  return x == 0 || (fabsf(x) >= 0x1p-40f && fabsf(x) < 0x1p60f);
}

// [parts, B, heads, length, padded]; zeros from width on.
QKCTS_DEVICE std::int64_t operand_index(const Problem& problem, const SideProblem& side, std::int64_t part,
                                        std::int64_t row) {
  return (part * problem.shape.batch * side.heads * side.length + row) * side.padded;
}

// Bits of a number that the storage format holds, as it stands in the input or was left by a rounding point.
QKCTS_DEVICE std::uint16_t exact_bits(const Problem& problem, const SideProblem& side, std::int64_t at) {
  if (side.vectors == nullptr) return static_cast<const std::uint16_t*>(side.in)[at];
  const float x = static_cast<const float*>(side.vectors)[at];
  return problem.storage == QKCTS_BFLOAT16 ? to_bfloat16(x) : to_binary16(x);
}

// One warp per row [B, heads, length].
template <class Real>
QKCTS_KERNEL split_operands(QKCTS_PROBLEM problem, int which) {
  static_assert(sizeof(Real) == sizeof(float));
  constexpr int threads = warp_threads;
  const SideProblem& side = problem.side[which];
  const std::int64_t row = block_x() * (block_threads / threads) + thread_index() / threads;
  const bool exists = row < problem.shape.batch * side.heads * side.length;
  bool irregular = false;
  for (std::int64_t d = thread_index() % threads; exists && d < side.padded; d += threads) {
    const std::int64_t from = row * side.width + d;
    if (side.parts == 1) {
      side.operands[operand_index(problem, side, 0, row) + d] =
          d < side.width ? exact_bits(problem, side, from) : std::uint16_t{0};
      continue;
    }
    float rest = d < side.width ? static_cast<const float*>(side.vectors)[from] : 0.0f;
    irregular = irregular || !is_regular(rest);
    for (int part = 0; part < split_parts; ++part) {
      const std::uint16_t bits = to_bfloat16(rest);
      side.operands[operand_index(problem, side, part, row) + d] = bits;
      rest -= from_bfloat16(bits);
    }
  }
  if (side.parts == 1) return;
  std::uint32_t any = irregular ? 1 : 0;
  for (int lanes = threads / 2; lanes > 0; lanes /= 2) any |= shuffle_xor(any, lanes);
  if (exists && thread_index() % threads == 0) side.irregular[row] = static_cast<std::uint8_t>(any);
}

}  // namespace qkcts::cuda
