// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_operand.hpp"

#include <cmath>

#include "conformance/budget_rope.hpp"

namespace qkcts {
namespace {

std::vector<double> values_of(const Case& c, Input input) {
  return c.inputs.has(input) ? c.inputs.at(input).values() : std::vector<double>{};
}

std::size_t parameter_index(std::uint32_t axes, std::int64_t head_dim, std::int64_t h, std::int64_t d) {
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

// Accuracy of ExactStages: what a norm after a rotation starts from.
constexpr double exact_stage_accuracy = 0x1p-50;

}  // namespace

OperandBudget::OperandBudget(const Case& c, const ExactStages& exact, OperandSide side,
                             const BudgetArithmetic& arithmetic)
    : case_(c),
      exact_(exact),
      arithmetic_(arithmetic),
      norm_(side == OperandSide::q ? c.contract.terms.q_norm : c.contract.terms.k_norm),
      rope_(c.contract.terms.rope),
      gain_input_(side == OperandSide::q ? Input::q_gain : Input::k_gain),
      bias_input_(side == OperandSide::q ? Input::q_bias : Input::k_bias),
      position_input_(side == OperandSide::q ? Input::q_position_ids : Input::k_position_ids),
      norm_stage_(side == OperandSide::q ? QKCTS_STAGE_Q_NORM : QKCTS_STAGE_K_NORM),
      rope_stage_(side == OperandSide::q ? QKCTS_STAGE_Q_ROPE : QKCTS_STAGE_K_ROPE),
      heads_(side == OperandSide::q ? c.shape.q_heads : c.shape.kv_heads),
      length_(side == OperandSide::q ? c.shape.q_len : c.shape.k_len),
      head_dim_(c.shape.head_dim),
      input_(values_of(c, side == OperandSide::q ? Input::q : Input::k)) {
  if (norm_.applied != 0 && norm_.gain != QKCTS_GAIN_NONE) {
    gain_ = values_of(c, gain_input_);
  }
  if (norm_.applied != 0 && norm_.bias_axes != QKCTS_AXES_NONE) {
    bias_ = values_of(c, bias_input_);
  }
  if (rope_.order != QKCTS_ROPE_NONE) {
    cos_ = values_of(c, Input::cos);
    sin_ = values_of(c, Input::sin);
  }
  const std::int64_t groups = norm_.axis == QKCTS_AXIS_FULL_WIDTH ? 1 : heads_;
  statistics_.resize(static_cast<std::size_t>(c.shape.batch * groups * length_));
}

std::int64_t OperandBudget::row_index(std::int64_t b, std::int64_t h, std::int64_t t) const {
  return (b * heads_ + h) * length_ + t;
}

bool OperandBudget::rotates_first() const {
  return rope_.order == QKCTS_ROPE_THEN_NORM;
}

const double* OperandBudget::norm_source(std::int64_t row) const {
  const std::vector<double>& values = rotates_first() ? exact_.values[rope_stage_] : input_;
  return values.data() + row * head_dim_;
}

VectorError OperandBudget::input_row(std::int64_t row) const {
  VectorError vector;
  const double* x = input_.data() + row * head_dim_;
  for (std::int64_t d = 0; d < head_dim_; ++d) {
    vector.magnitude.push_back(std::fabs(x[d]));
    vector.error.push_back(arithmetic_.operand_error(x[d], case_.inputs.format));
  }
  return vector;
}

VectorError OperandBudget::rotated(VectorError vector, std::int64_t b, std::int64_t row, std::int64_t t) const {
  const Format table_format = case_.inputs.format == Format::binary64 ? Format::binary64 : Format::binary32;
  const std::int64_t pairs = rope_pairs(rope_, head_dim_);
  const auto position =
      static_cast<std::int64_t>(case_.inputs.at(position_input_).value(static_cast<std::size_t>(b * length_ + t)));
  for (std::int64_t i = 0; i < pairs; ++i) {
    const auto at = static_cast<std::size_t>(position * pairs + i);
    rotate_errors(vector, rope_pair(rope_, head_dim_, i),
                  {cos_[at], sin_[at], arithmetic_.operand_error(cos_[at], table_format),
                   arithmetic_.operand_error(sin_[at], table_format)},
                  arithmetic_);
  }
  const double* y = exact_.values[rope_stage_].data() + row * head_dim_;
  for (std::int64_t d = 0; d < head_dim_; ++d) {
    vector.magnitude[static_cast<std::size_t>(d)] = std::fabs(y[d]);
  }
  return vector;
}

NormParameters OperandBudget::parameters(std::int64_t h, std::int64_t d) const {
  NormParameters p;
  if (!gain_.empty()) {
    const double w = gain_[parameter_index(norm_.gain_axes, head_dim_, h, d)];
    p.gain = norm_.gain == QKCTS_GAIN_ONE_PLUS_W ? 1 + w : w;
    p.gain_error = arithmetic_.operand_error(w, case_.inputs.format);
  }
  if (!bias_.empty()) {
    p.bias = bias_[parameter_index(norm_.bias_axes, head_dim_, h, d)];
    p.bias_error = arithmetic_.operand_error(p.bias, case_.inputs.format);
  }
  return p;
}

const NormStatistics& OperandBudget::statistics(std::int64_t b, std::int64_t h, std::int64_t t) {
  const bool full_width = norm_.axis == QKCTS_AXIS_FULL_WIDTH;
  const std::int64_t group = full_width ? b * length_ + t : row_index(b, h, t);
  std::optional<NormStatistics>& slot = statistics_[static_cast<std::size_t>(group)];
  if (!slot) {
    std::vector<double> x;
    std::vector<double> error;
    bool domain = false;
    for (std::int64_t head = full_width ? 0 : h; head < (full_width ? heads_ : h + 1); ++head) {
      const std::int64_t row = row_index(b, head, t);
      VectorError vector = input_row(row);
      if (rotates_first()) {
        vector = rotated(std::move(vector), b, row, t);
      }
      domain = domain || vector.domain;
      x.insert(x.end(), norm_source(row), norm_source(row) + head_dim_);
      error.insert(error.end(), vector.error.begin(), vector.error.end());
    }
    slot = norm_statistics(norm_, x, error, rotates_first() ? exact_stage_accuracy : 0, arithmetic_);
    slot->domain = slot->domain || domain;
  }
  return *slot;
}

VectorError OperandBudget::normalised(const VectorError& vector, std::int64_t b, std::int64_t h, std::int64_t t) {
  const NormStatistics& shared = statistics(b, h, t);
  const std::int64_t row = row_index(b, h, t);
  const double* x = norm_source(row);
  const double* y = exact_.values[norm_stage_].data() + row * head_dim_;
  VectorError result;
  result.common = norm_keeps_factor(norm_, shared) ? shared.common : 0;
  result.domain = vector.domain || shared.domain;
  result.magnitude.resize(static_cast<std::size_t>(head_dim_));
  result.error.resize(static_cast<std::size_t>(head_dim_));
  for (std::int64_t d = 0; d < head_dim_ && !result.domain; ++d) {
    const auto i = static_cast<std::size_t>(d);
    const NormParameters p = parameters(h, d);
    result.magnitude[i] = std::fabs(y[d]);
    result.error[i] = norm_element_error(norm_, shared, x[d], vector.error[i], p, y[d], arithmetic_);
    result.domain = norm_element_overflows(shared, x[d], vector.error[i], p, arithmetic_);
  }
  return result;
}

OperandRow OperandBudget::row(std::int64_t b, std::int64_t h, std::int64_t t) {
  const std::int64_t at = row_index(b, h, t);
  OperandRow result;
  result.product = input_row(at);
  if (rotates_first()) {
    result.product = rotated(std::move(result.product), b, at, t);
    result.rope = result.product;
  }
  if (norm_.applied != 0) {
    result.product = normalised(result.product, b, h, t);
    result.norm = result.product;
  }
  if (rope_.order == QKCTS_NORM_THEN_ROPE) {
    if (!result.product.domain) {
      result.product = rotated(std::move(result.product), b, at, t);
    }
    result.rope = result.product;
  }
  return result;
}

}  // namespace qkcts
