// SPDX-License-Identifier: Apache-2.0
// Gain and bias of a norm as they are read, and the element of them that acts on a lane.
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/budget_norm.hpp"
#include "conformance/case.hpp"

namespace qkcts {

class NormTensors {
 public:
  NormTensors(const Case& c, const qkcts_norm& norm, Input gain, Input bias, const BudgetArithmetic& arithmetic)
      : arithmetic_(arithmetic), norm_(norm), format_(c.inputs.format) {
    if (norm.applied != 0 && norm.gain != QKCTS_GAIN_NONE) {
      gain_ = c.inputs.at(gain).values();
    }
    if (norm.applied != 0 && norm.bias_axes != QKCTS_AXES_NONE) {
      bias_ = c.inputs.at(bias).values();
    }
  }

  // Lane d of head h; the constant factor is left at 1.
  ElementParameters at(std::int64_t head_dim, std::int64_t h, std::int64_t d) const {
    ElementParameters p;
    if (!gain_.empty()) {
      const double w = gain_[index(norm_.gain_axes, head_dim, h, d)];
      p.gain = norm_.gain == QKCTS_GAIN_ONE_PLUS_W ? 1 + w : w;
      p.gain_error = arithmetic_.operand_error(w, format_);
    }
    if (!bias_.empty()) {
      p.bias = bias_[index(norm_.bias_axes, head_dim, h, d)];
      p.bias_error = arithmetic_.operand_error(p.bias, format_);
    }
    return p;
  }

 private:
  static std::size_t index(std::uint32_t axes, std::int64_t head_dim, std::int64_t h, std::int64_t d) {
    switch (axes) {
      case QKCTS_AXES_SCALAR:
        return 0;
      case QKCTS_AXES_HEAD_DIM:
        return static_cast<std::size_t>(d);
      case QKCTS_AXES_HEAD:
        return static_cast<std::size_t>(h);
      default:
        return static_cast<std::size_t>(h * head_dim + d);
    }
  }

  const BudgetArithmetic& arithmetic_;
  const qkcts_norm& norm_;
  Format format_;
  std::vector<double> gain_, bias_;
};

}  // namespace qkcts
