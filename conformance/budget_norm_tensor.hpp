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
      : norm_(norm) {
    const auto read = [&](Input input, std::vector<double>& values, std::vector<double>& errors) {
      values = c.inputs.at(input).values();
      errors.resize(values.size());
      for (std::size_t i = 0; i < values.size() && !arithmetic.reads_exactly(c.inputs.format); ++i) {
        errors[i] = arithmetic.operand_error(values[i], c.inputs.format);
      }
    };
    if (norm.applied != 0 && norm.gain != QKCTS_GAIN_NONE) {
      read(gain, gain_, gain_error_);
    }
    if (norm.applied != 0 && norm.bias_axes != QKCTS_AXES_NONE) {
      read(bias, bias_, bias_error_);
    }
  }

  // Lane d of head h; the constant factor is left at 1.
  ElementParameters at(std::int64_t head_dim, std::int64_t h, std::int64_t d) const {
    ElementParameters p;
    if (!gain_.empty()) {
      const std::size_t at = index(norm_.gain_axes, head_dim, h, d);
      p.gain = norm_.gain == QKCTS_GAIN_ONE_PLUS_W ? 1 + gain_[at] : gain_[at];
      p.gain_error = gain_error_[at];
    }
    if (!bias_.empty()) {
      const std::size_t at = index(norm_.bias_axes, head_dim, h, d);
      p.bias = bias_[at];
      p.bias_error = bias_error_[at];
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

  const qkcts_norm& norm_;
  std::vector<double> gain_, gain_error_, bias_, bias_error_;
};

}  // namespace qkcts
