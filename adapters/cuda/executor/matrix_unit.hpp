// SPDX-License-Identifier: Apache-2.0
// The matrix unit as its published models have it (Khattak and Mikaitis, arXiv 2512.07004; Fasi, Higham, Mikaitis and
// Pranesh, PeerJ CS 7:e330): K exact products and the accumulator are aligned to the largest exponent among them (of a
// product: the sum of its factors' exponents), cut off after F fraction bits, added exactly, and the sum is rounded
// toward zero to binary32. Blocks of K follow each other. V100: 4, 23. A100: 8, 24. H100, B200: 16, 25.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qkcts::cuda {

enum class NarrowFormat { bfloat16, binary16 };

struct UnitModel {
  int products;  // K
  int fraction;  // F
  // Does a product with a factor 0 take part in the alignment, with the exponent that a zero is stored with? In the
  // published model it does not. If a real unit does it, what a hidden key holds shows in a row (docs/cuda.md, What a
  // run on a GPU has to show).
  bool zeros_align = false;
  // Is a subnormal factor or accumulator aligned by the exponent that it is stored with, in place of that of its
  // leading bit? Then more is cut off beside it than the profiles' growth grants.
  bool subnormals_as_stored = false;
};

// accumulator + sum of a[i] * b[i], i < count, as the unit forms it. Operands are bit patterns.
float sum_on_unit(const UnitModel& unit, NarrowFormat format, float accumulator, const std::uint16_t* a,
                  const std::uint16_t* b, std::size_t count);

// mma.m16n8k16: all lanes of a warp together; operands lie in registers as the PTX ISA says.
void multiply_on_unit(NarrowFormat format, float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]);

}  // namespace qkcts::cuda
