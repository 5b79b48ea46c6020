// SPDX-License-Identifier: Apache-2.0
// Projection, norm and rotation of all heads of one token. Only for translation units built with AVX2 and FMA.
#pragma once

#include <cstdint>

#include "adapters/avx2/aligned_floats.hpp"
#include "adapters/avx2/plan.hpp"
#include "adapters/avx2/projection.hpp"

namespace qkcts::avx2 {

// A token is [heads, stride] binary32; lanes behind those of a head are 0 before and after.
class TokenTransform {
 public:
  TokenTransform(const Plan& plan, const VectorPlan& side);

  // Loads or projects token t of batch entry b, applies norm and rotation in the contract's order, writes the observed
  // stages.
  void apply(std::int64_t b, std::int64_t t, float* token);

 private:
  void load(std::int64_t b, std::int64_t t, float* token) const;
  void store(const StridedTensor& stage, std::int64_t b, std::int64_t t, const float* token) const;
  void transform(float* token) const;  // clamps, norm and multiplier
  void clamp(double bound, float* token) const;
  void normalise(float* token) const;
  void load_angles(std::int64_t h, std::int64_t position);
  void rotate(std::int64_t b, std::int64_t t, float* token);

  const Plan& plan_;
  const VectorPlan& side_;
  RowProjection projection_;
  AlignedFloats factor_, bias_;  // [heads, stride], empty if the contract has none
  AlignedFloats cos_, sin_;      // table row of the current position
};

}  // namespace qkcts::avx2
