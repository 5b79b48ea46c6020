// SPDX-License-Identifier: Apache-2.0
// Numbers stored as 8-bit integers times a scale, as key/value caches hold them: code c stands for c * scale, exactly.
// Every function is exact on exact inputs: one rounding, ties to even, whatever the rounding mode of the thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace qkcts {

// int8 with a given scale, a binary32 number > 0: the integer nearest to x / scale, saturating at -128 and 127. x
// finite.
std::int8_t quantise(double x, double scale);

// Blocks of 32 numbers with a scale each: the largest magnitude over 127, rounded to binary16 (saturating at 65504). A
// code is the integer nearest to x / scale within [-127, 127]. A block whose scale is 0 (all zero, or too small for
// binary16) has codes 0. The last block may be shorter. x finite.
constexpr std::size_t quantisation_block = 32;
struct QuantisedBlocks {
  std::vector<double> scales;      // binary16 numbers, one per block
  std::vector<std::int8_t> codes;  // one per number
};
QuantisedBlocks quantise_blocks(std::span<const double> x);

// The numbers that the codes stand for.
std::vector<double> dequantised(const QuantisedBlocks& blocks);

}  // namespace qkcts
