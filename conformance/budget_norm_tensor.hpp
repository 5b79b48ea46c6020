// SPDX-License-Identifier: Apache-2.0
// Gain and bias of a norm as they are read, and the element of them that acts on a lane.
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/budget_norm.hpp"
#include "conformance/case.hpp"
#include "conformance/parameter_place.hpp"

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
      const std::size_t at = parameter_place(norm_.gain_axes, h, d, head_dim);
      p.gain = norm_.gain == QKCTS_GAIN_ONE_PLUS_W ? 1 + gain_[at] : gain_[at];
      p.gain_error = gain_error_[at];
    }
    if (!bias_.empty()) {
      const std::size_t at = parameter_place(norm_.bias_axes, h, d, head_dim);
      p.bias = bias_[at];
      p.bias_error = bias_error_[at];
    }
    return p;
  }

  // All lanes of a head.
  void set_columns(std::int64_t head_dim, std::int64_t h, ParameterColumns& columns) const {
    const auto n = static_cast<std::size_t>(head_dim);
    for (std::vector<double>* column : {&columns.gain, &columns.gain_error, &columns.bias, &columns.bias_error}) {
      column->resize(n);
    }
    for (std::int64_t d = 0; d < head_dim; ++d) {
      const auto i = static_cast<std::size_t>(d);
      const ElementParameters p = at(head_dim, h, d);
      columns.gain[i] = p.gain;
      columns.gain_error[i] = p.gain_error;
      columns.bias[i] = p.bias;
      columns.bias_error[i] = p.bias_error;
    }
  }

 private:
  const qkcts_norm& norm_;
  std::vector<double> gain_, gain_error_, bias_, bias_error_;
};

}  // namespace qkcts
