// SPDX-License-Identifier: Apache-2.0
// The part of plain_attention before the scores: q, k and v through projection, norm and rotation, formula by formula.
#pragma once

#include <array>

#include "adapters/sample_case.hpp"

namespace qkcts {

using PlainVectors = std::vector<double>;  // [B, heads, length, D]

struct PlainExtents {
  std::int64_t batch, heads, length, dim;
  std::size_t at(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t d) const {
    return static_cast<std::size_t>(((b * heads + h) * length + t) * dim + d);
  }
};

// What the scores are made of, and on the way the stages of one side (0: q, 1: k).
PlainVectors plain_side(const SampleCase& sample, std::size_t side, StageValues& stages);

// What the output is made of, and its stage v_norm.
PlainVectors plain_values(const SampleCase& sample, StageValues& stages);

}  // namespace qkcts
