// SPDX-License-Identifier: Apache-2.0
// q or k as x^ W + bias in double words.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/fast_tier_operand.hpp"

namespace qkcts {

class FastProjection {
 public:
  FastProjection(const CaseValues& values, const SideValues& side, const Projection& projection,
                 const Kernels& kernels);

  // The heads of a group, with the errors of their lanes. False where it declines.
  bool make(std::int64_t group, WordArray& x);

 private:
  const SideValues& side_;
  const Projection& projection_;
  const Kernels& kernels_;
  FastOperands source_;              // x^ of every token
  std::vector<bool> made_;           // per token
  std::size_t width_, stride_;       // E; columns of weight_
  std::vector<double> weight_;       // [E, stride_]
  std::vector<double> column_norm_;  // >= 2-norm of every column
  std::vector<double> anchors_, offset_;
  GroupWords unused_;
};

}  // namespace qkcts
