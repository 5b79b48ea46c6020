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

const qkcts_norm_range& range_of(const Case& c, OperandSide side) {
  return side == OperandSide::q ? c.contract.terms.q_range : c.contract.terms.k_range;
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
      transforms_(transforms(norm_, range_of(c, side))),
      clamp_before_(clamp_terms(range_of(c, side).clip_before, arithmetic)),
      clamp_after_(clamp_terms(range_of(c, side).clip_after, arithmetic)),
      factor_(factor_terms(range_of(c, side).multiplier, arithmetic)),
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
  const qkcts_rotation& rotation = c.contract.terms.rotation;
  if (rope_.order != QKCTS_ROPE_NONE && rotation.angles == QKCTS_ANGLES_COMPUTED) {
    angles_.emplace(rope_, rotation, 2 * rope_pairs(rope_, head_dim_), arithmetic);
  } else if (rope_.order != QKCTS_ROPE_NONE) {
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

std::vector<double> OperandBudget::norm_source(std::int64_t row) const {
  const std::vector<double>& values = rotates_first() ? exact_.values[rope_stage_] : input_;
  const double* x = values.data() + row * head_dim_;
  std::vector<double> source(x, x + head_dim_);
  for (double& value : source) {
    value = clamp_before_.value(value);
  }
  return source;
}

void OperandBudget::clamp_source(VectorError& vector, std::int64_t row) const {
  if (!clamp_before_.exists()) {
    return;
  }
  const std::vector<double>& values = rotates_first() ? exact_.values[rope_stage_] : input_;
  const double* x = values.data() + row * head_dim_;
  for (std::int64_t d = 0; d < head_dim_; ++d) {
    const auto i = static_cast<std::size_t>(d);
    const double blur = rotates_first() ? std::fabs(x[d]) * exact_stage_accuracy : 0;
    vector.error[i] = clamp_before_.moved(x[d], vector.error[i], blur);
    vector.magnitude[i] = std::fabs(clamp_before_.value(x[d]));
  }
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

TableEntry OperandBudget::table_entry(std::int64_t position, std::int64_t pair) const {
  if (angles_) {
    return angles_->entry(static_cast<double>(position), pair);
  }
  const Format format = case_.inputs.format == Format::binary64 ? Format::binary64 : Format::binary32;
  const auto at = static_cast<std::size_t>(position * rope_pairs(rope_, head_dim_) + pair);
  return {cos_[at], sin_[at], arithmetic_.operand_error(cos_[at], format), arithmetic_.operand_error(sin_[at], format)};
}

VectorError OperandBudget::rotated(VectorError vector, std::int64_t b, std::int64_t row, std::int64_t t) const {
  const std::int64_t pairs = rope_pairs(rope_, head_dim_);
  const auto position =
      static_cast<std::int64_t>(case_.inputs.at(position_input_).value(static_cast<std::size_t>(b * length_ + t)));
  for (std::int64_t i = 0; i < pairs; ++i) {
    rotate_errors(vector, rope_pair(rope_, head_dim_, i), table_entry(position, i), arithmetic_);
  }
  settle_errors(vector, rope_, case_.contract.terms.rotation, head_dim_);
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
  p.factor = factor_;
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
      clamp_source(vector, row);
      domain = domain || vector.domain;
      const std::vector<double> source = norm_source(row);
      x.insert(x.end(), source.begin(), source.end());
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
  const std::vector<double> x = norm_source(row);
  const double* y = exact_.values[norm_stage_].data() + row * head_dim_;
  const bool ranged = factor_.exists() || clamp_after_.exists();
  VectorError result;
  result.common = norm_keeps_factor(norm_, shared) ? shared.common : 0;
  result.domain = vector.domain || shared.domain;
  result.magnitude.resize(static_cast<std::size_t>(head_dim_));
  result.error.resize(static_cast<std::size_t>(head_dim_));
  std::vector<double> before(static_cast<std::size_t>(head_dim_)), blur(static_cast<std::size_t>(head_dim_));
  for (std::int64_t d = 0; d < head_dim_ && !result.domain; ++d) {
    const auto i = static_cast<std::size_t>(d);
    const NormParameters p = parameters(h, d);
    double unscaled = y[d];
    result.magnitude[i] = std::fabs(y[d]);
    if (ranged) {
      const NormElement element = norm_element(shared, x[i], p, static_cast<double>(head_dim_ * heads_));
      unscaled = std::fabs(element.unscaled) + element.blur / factor_.value;
      before[i] = element.value;
      blur[i] = element.blur;
      result.magnitude[i] = std::fabs(element.value) + element.blur;
    }
    result.error[i] = norm_element_error(norm_, shared, x[i], vector.error[i], p, unscaled, arithmetic_);
    result.domain = norm_element_overflows(shared, x[i], vector.error[i], p, arithmetic_);
  }
  if (ranged && !result.domain) {
    clamp_errors(result, before, blur, clamp_after_);
    for (std::int64_t d = 0; d < head_dim_; ++d) {
      result.magnitude[static_cast<std::size_t>(d)] = std::fabs(y[d]);
    }
  }
  return result;
}

// Factor and clamps where no norm is applied.
VectorError OperandBudget::unnormalised(const VectorError& vector, std::int64_t row) const {
  const std::vector<double> x = norm_source(row);
  const double* y = exact_.values[norm_stage_].data() + row * head_dim_;
  VectorError result = vector;
  std::vector<double> before(x.size()), blur(x.size());
  for (std::size_t i = 0; i < x.size() && !result.domain; ++i) {
    before[i] = x[i] * factor_.value;
    blur[i] = std::fabs(before[i]) * 2 * exact_stage_accuracy;
    result.error[i] = factor_.moved(x[i], vector.error[i], arithmetic_);
    result.magnitude[i] = std::fabs(before[i]);
    result.domain =
        !((result.magnitude[i] + result.error[i]) * (1 + 8 * arithmetic_.range_roundoff()) < arithmetic_.largest()) ||
        !(factor_.value < arithmetic_.largest());
  }
  if (!result.domain) {
    clamp_errors(result, before, blur, clamp_after_);
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    result.magnitude[i] = std::fabs(y[i]);
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
  if (transforms_) {
    clamp_source(result.product, at);
    result.product = norm_.applied != 0 ? normalised(result.product, b, h, t) : unnormalised(result.product, at);
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
