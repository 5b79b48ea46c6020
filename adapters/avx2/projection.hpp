// SPDX-License-Identifier: Apache-2.0
// QK-PROJ: a token of q or k as the product of a row with a matrix. Only for translation units built with AVX2 and FMA.
#pragma once

#include <cstdint>

#include "adapters/avx2/aligned_floats.hpp"
#include "adapters/avx2/plan.hpp"

namespace qkcts::avx2 {

class RowProjection {
 public:
  explicit RowProjection(const VectorPlan& side);
  bool present() const { return side_.projection.x.present(); }

  // token [heads, stride] = norm(row of token t) W + bias; lanes behind those of a head are 0.
  void apply(std::int64_t b, std::int64_t t, float* token);

 private:
  const VectorPlan& side_;
  AlignedFloats weight_;                 // [width, heads, stride]
  AlignedFloats bias_;                   // [heads, stride], empty if the contract has none
  AlignedFloats row_;                    // [width] and zeros up to whole registers
  AlignedFloats row_factor_, row_bias_;  // of the norm of the row, empty if there is none
};

}  // namespace qkcts::avx2
