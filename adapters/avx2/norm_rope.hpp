// SPDX-License-Identifier: Apache-2.0
// Norm and rotation of all heads of one token. Only for translation units built with AVX2 and FMA.
#pragma once

#include <cstdint>

#include "adapters/avx2/aligned_floats.hpp"
#include "adapters/avx2/plan.hpp"

namespace qkcts::avx2 {

// A token is [heads, dim_stride] binary32; lanes from D on are 0 before and after.
class TokenTransform {
 public:
  TokenTransform(const Plan& plan, const VectorPlan& side);

  // Loads token t of batch entry b, applies norm and rotation in the contract's order, writes the observed stages.
  void apply(std::int64_t b, std::int64_t t, float* token);

 private:
  void load(std::int64_t b, std::int64_t t, float* token) const;
  void store(const StridedTensor& stage, std::int64_t b, std::int64_t t, const float* token) const;
  void transform(float* token) const;  // clamps, norm and multiplier
  void clamp(double bound, float* token) const;
  void normalise(float* token) const;
  void load_angles(std::int64_t b, std::int64_t t);
  void rotate(float* token) const;

  const Plan& plan_;
  const VectorPlan& side_;
  AlignedFloats factor_, bias_;  // [heads, dim_stride], empty if the contract has none
  AlignedFloats cos_, sin_;      // table row of the current position
};

}  // namespace qkcts::avx2
