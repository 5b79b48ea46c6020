// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_operand.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "conformance/budget_rope.hpp"
#include "conformance/budget_rounded_rope.hpp"
#include "conformance/tensor_row.hpp"

namespace qkcts {
namespace {

// What belongs to a side: its clauses, inputs and stages.
struct SideParts {
  const qkcts_norm& norm;
  const qkcts_norm_range& range;
  Input values, gain, bias, positions;
  qkcts_stage projection, norm_stage, rope;
  std::int64_t heads, length, head_dim;
};

SideParts parts_of(const Case& c, OperandSide side) {
  const qkcts_contract& terms = c.contract.terms;
  const qkcts_shape& shape = c.shape;
  switch (side) {
    case OperandSide::q:
      return {terms.q_norm,       terms.q_range,         Input::q,           Input::q_gain,
              Input::q_bias,      Input::q_position_ids, QKCTS_STAGE_Q_PROJ, QKCTS_STAGE_Q_NORM,
              QKCTS_STAGE_Q_ROPE, shape.q_heads,         shape.q_len,        shape.head_dim};
    case OperandSide::k:
      return {terms.k_norm,       terms.k_range,         Input::k,           Input::k_gain,
              Input::k_bias,      Input::k_position_ids, QKCTS_STAGE_K_PROJ, QKCTS_STAGE_K_NORM,
              QKCTS_STAGE_K_ROPE, shape.kv_heads,        shape.k_len,        shape.head_dim};
    default:
      return {terms.v_norm,      terms.v_range,         Input::v,          Input::v_gain,
              Input::v_bias,     Input::k_position_ids, QKCTS_STAGE_COUNT, QKCTS_STAGE_V_NORM,
              QKCTS_STAGE_COUNT, shape.kv_heads,        shape.k_len,       shape.v_head_dim};
  }
}

const qkcts_vector_rounding& points_of(const Case& c, OperandSide side) {
  const qkcts_rounding& rounding = c.contract.terms.rounding;
  return side == OperandSide::q ? rounding.q : (side == OperandSide::k ? rounding.k : rounding.v);
}

ProjectionBudget::Side projected(const Case& c, OperandSide side) {
  const qkcts_projection& projection = c.contract.terms.projection;
  const qkcts_rounding& rounding = c.contract.terms.rounding;
  if (side == OperandSide::q) {
    return {Input::q_x,         Input::q_weight,  Input::q_weight_bias, Input::q_x_gain, Input::q_x_bias,
            projection.q_input, rounding.q_input, c.shape.q_heads,      c.shape.q_len};
  }
  return {Input::k_x,         Input::k_weight,  Input::k_weight_bias, Input::k_x_gain, Input::k_x_bias,
          projection.k_input, rounding.k_input, c.shape.kv_heads,     c.shape.k_len};
}

// Accuracy of ExactStages: what a norm after a projection or a rotation starts from.
constexpr double exact_stage_accuracy = 0x1p-50;

// The factor that the lanes share becomes part of the error of each.
void multiply_out(VectorError& vector) {
  for (std::size_t i = 0; vector.common > 0 && i < vector.error.size(); ++i) {
    vector.error[i] = sum_upper(vector.total(i), 16);
  }
  vector.common = 0;
}

}  // namespace

OperandBudget::OperandBudget(const Case& c, const ExactStages& exact, OperandSide side,
                             const BudgetArithmetic& arithmetic)
    : case_(c),
      exact_(exact),
      arithmetic_(arithmetic),
      norm_(parts_of(c, side).norm),
      rope_(c.contract.terms.rope),
      order_(side == OperandSide::v ? static_cast<std::uint32_t>(QKCTS_ROPE_NONE) : rope_.order),
      transforms_(transforms(norm_, parts_of(c, side).range)),
      clamp_before_(clamp_terms(parts_of(c, side).range.clip_before, arithmetic)),
      clamp_after_(clamp_terms(parts_of(c, side).range.clip_after, arithmetic)),
      factor_(factor_terms(parts_of(c, side).range.multiplier, arithmetic)),
      inner_points_(norm_points(points_of(c, side), c.contract.terms.rounding.saturate != 0, arithmetic)),
      tensors_(c, norm_, parts_of(c, side).gain, parts_of(c, side).bias, arithmetic),
      position_input_(parts_of(c, side).positions),
      projection_stage_(parts_of(c, side).projection),
      norm_stage_(parts_of(c, side).norm_stage),
      rope_stage_(parts_of(c, side).rope),
      heads_(parts_of(c, side).heads),
      length_(parts_of(c, side).length),
      head_dim_(parts_of(c, side).head_dim) {
  const qkcts_vector_rounding& points = points_of(c, side);
  const auto point = [&](std::uint32_t format) {
    return RoundingPoint(BudgetTerm::rounding_point, format, c.contract.terms.rounding.saturate != 0, arithmetic);
  };
  norm_point_ = point(points.norm);
  product_point_ = point(points.rope_product);
  rope_point_ = point(points.rope);
  if (side != OperandSide::v && c.contract.terms.projection.form != QKCTS_PROJECTION_NONE) {
    projection_point_ = point(points.projection);
    projection_.emplace(c, projected(c, side), exact.unrounded(projection_stage_), arithmetic);
  } else {
    input_ = &c.inputs.at(parts_of(c, side).values);
  }
  const qkcts_rotation& rotation = c.contract.terms.rotation;
  if (order_ != QKCTS_ROPE_NONE && rotation.angles == QKCTS_ANGLES_COMPUTED) {
    angles_.emplace(rope_, rotation, 2 * rope_pairs(rope_, head_dim_), arithmetic);
  } else if (order_ != QKCTS_ROPE_NONE) {
    cos_ = c.inputs.at(Input::cos).values();
    sin_ = c.inputs.at(Input::sin).values();
    if (rotation.tables == QKCTS_TABLES_PER_HEAD) {
      head_table_ = static_cast<std::int64_t>(cos_.size()) / c.shape.q_heads;
    }
  }
  const std::int64_t groups = norm_.axis == QKCTS_AXIS_FULL_WIDTH ? 1 : heads_;
  statistics_.resize(static_cast<std::size_t>(c.shape.batch * groups * length_));
}

std::int64_t OperandBudget::row_index(std::int64_t b, std::int64_t h, std::int64_t t) const {
  return (b * heads_ + h) * length_ + t;
}

const std::vector<double>& OperandBudget::input_row(std::int64_t row) {
  if (row != input_row_of_) {
    input_row_ = row_values(*input_, row, head_dim_);
    input_row_of_ = row;
  }
  return input_row_;
}

std::vector<double> OperandBudget::source_row(std::int64_t row) {
  if (!rotates_first() && !projection_) return input_row(row);
  const double* x = exact_.values[rotates_first() ? rope_stage_ : projection_stage_].data() + row * head_dim_;
  return {x, x + head_dim_};
}

double OperandBudget::source_accuracy() const {
  return rotates_first() || projection_ ? exact_stage_accuracy : 0;
}

std::vector<double> OperandBudget::norm_source(std::int64_t row) {
  std::vector<double> source = source_row(row);
  for (std::size_t i = 0; clamp_before_.exists() && i < source.size(); ++i) {
    source[i] = clamp_before_.value(source[i]);
  }
  return source;
}

// Before norm, factor and clamps: a factor that is common to the vector is multiplied out, for none of them lets it
// through as it is, and the clamp before the norm acts.
void OperandBudget::settle_source(VectorError& vector, std::int64_t row) {
  multiply_out(vector);
  if (!clamp_before_.exists()) {
    return;
  }
  const std::vector<double> x = source_row(row);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double blur = std::fabs(x[i]) * source_accuracy();
    vector.error[i] = clamp_before_.moved(x[i], vector.error[i], blur);
    vector.magnitude[i] = std::fabs(clamp_before_.value(x[i]));
  }
}

VectorError OperandBudget::first_row(std::int64_t b, std::int64_t h, std::int64_t t) {
  if (projection_) {
    VectorError vector = projection_->row(b, h, t);
    round_stage(vector, projection_stage_, row_index(b, h, t), projection_point_);
    return vector;
  }
  VectorError vector;
  const std::vector<double>& x = input_row(row_index(b, h, t));
  vector.magnitude.resize(x.size());
  vector.error.resize(x.size());
  std::transform(x.begin(), x.end(), vector.magnitude.begin(), [](double value) { return std::fabs(value); });
  if (!arithmetic_.reads_exactly(case_.inputs.format)) {
    std::transform(x.begin(), x.end(), vector.error.begin(),
                   [&](double value) { return arithmetic_.operand_error(value, case_.inputs.format); });
  }
  return vector;
}

TableEntry OperandBudget::table_entry(std::int64_t h, std::int64_t position, std::int64_t pair) const {
  if (angles_) {
    return angles_->entry(static_cast<double>(position), pair);
  }
  const Format format = case_.inputs.format == Format::binary64 ? Format::binary64 : Format::binary32;
  const auto at = static_cast<std::size_t>(h * head_table_ + position * rope_pairs(rope_, head_dim_) + pair);
  return {cos_[at], sin_[at], arithmetic_.operand_error(cos_[at], format), arithmetic_.operand_error(sin_[at], format)};
}

VectorError OperandBudget::rotated(VectorError vector, std::int64_t b, std::int64_t h, std::int64_t t) const {
  if (vector.domain) {
    return vector;
  }
  const std::int64_t pairs = rope_pairs(rope_, head_dim_);
  const auto position =
      static_cast<std::int64_t>(case_.inputs.at(position_input_).value(static_cast<std::size_t>(b * length_ + t)));
  if (product_point_.exists()) {
    multiply_out(vector);
  }
  for (std::int64_t i = 0; i < pairs; ++i) {
    const RopePair pair = rope_pair(rope_, head_dim_, i);
    if (product_point_.exists()) {
      rotate_rounded_errors(vector, pair, table_entry(h, position, i),
                            angles_ ? WaveKnowledge::size : WaveKnowledge::value, product_point_, arithmetic_);
    } else {
      rotate_errors(vector, pair, table_entry(h, position, i), arithmetic_);
    }
  }
  settle_errors(vector, rope_, case_.contract.terms.rotation, head_dim_);
  const double* before = exact_.unrounded(rope_stage_).data() + row_index(b, h, t) * head_dim_;
  for (std::int64_t d = 0; d < head_dim_; ++d) {
    vector.magnitude[static_cast<std::size_t>(d)] = std::fabs(before[d]);
  }
  // Rotated lanes hold numbers of another point now, or of none.
  const std::int64_t first = rope_.span == QKCTS_SPAN_LAST ? head_dim_ - 2 * pairs : 0;
  for (std::int64_t d = first; !vector.held.empty() && d < first + 2 * pairs; ++d) {
    vector.held[static_cast<std::size_t>(d)] = 0;
  }
  const double* after = exact_.values[rope_stage_].data() + row_index(b, h, t) * head_dim_;
  round_errors(vector, before, after, first, 2 * pairs, rope_point_);
  return vector;
}

const ParameterColumns& OperandBudget::columns(std::int64_t h) {
  if (h != columns_of_) {
    tensors_.set_columns(head_dim_, h, columns_);
    columns_of_ = h;
  }
  return columns_;
}

const NormStatistics& OperandBudget::statistics(const VectorError& vector, const std::vector<double>& x, std::int64_t b,
                                                std::int64_t h, std::int64_t t) {
  const bool full_width = norm_.axis == QKCTS_AXIS_FULL_WIDTH;
  const std::int64_t row = row_index(b, h, t);
  std::optional<NormStatistics>& slot = statistics_[static_cast<std::size_t>(full_width ? b * length_ + t : row)];
  if (!slot && full_width) {
    slot = full_width_statistics(b, t);
  } else if (!slot) {
    slot = norm_statistics(norm_, x, vector.error, source_accuracy(), arithmetic_);
    slot->domain = slot->domain || vector.domain;
  }
  return *slot;
}

NormStatistics OperandBudget::full_width_statistics(std::int64_t b, std::int64_t t) {
  std::vector<double> x;
  std::vector<double> error;
  bool domain = false;
  for (std::int64_t head = 0; head < heads_; ++head) {
    const std::int64_t row = row_index(b, head, t);
    VectorError vector = first_row(b, head, t);
    if (rotates_first()) {
      vector = rotated(std::move(vector), b, head, t);
    }
    settle_source(vector, row);
    domain = domain || vector.domain;
    const std::vector<double> source = norm_source(row);
    x.insert(x.end(), source.begin(), source.end());
    error.insert(error.end(), vector.error.begin(), vector.error.end());
  }
  NormStatistics statistics = norm_statistics(norm_, x, error, source_accuracy(), arithmetic_);
  statistics.domain = statistics.domain || domain;
  return statistics;
}

VectorError OperandBudget::normalised(const VectorError& vector, std::int64_t b, std::int64_t h, std::int64_t t) {
  const std::int64_t row = row_index(b, h, t);
  const std::vector<double> x = norm_source(row);
  const NormStatistics& shared = statistics(vector, x, b, h, t);
  if (inner_points_.exist()) {
    return normalised_by_points(vector, x, h, row, shared);
  }
  const double* y = exact_.unrounded(norm_stage_).data() + row * head_dim_;
  const bool ranged = factor_.exists() || clamp_after_.exists();
  VectorError result;
  result.common = norm_keeps_factor(norm_, shared) ? shared.common : 0;
  result.domain = vector.domain || shared.domain;
  result.magnitude.resize(static_cast<std::size_t>(head_dim_));
  result.error.resize(static_cast<std::size_t>(head_dim_));
  std::vector<double> before, blur;
  if (ranged) {
    before.resize(x.size());
    blur.resize(x.size());
  }
  const NormElements elements(norm_, shared, factor_, arithmetic_);
  if (!ranged && !result.domain) {
    std::transform(y, y + head_dim_, result.magnitude.begin(), [](double value) { return std::fabs(value); });
    if (elements.set_errors(x, vector.error, columns(h), {y, x.size()}, result.error)) {
      return result;
    }
    result.magnitude.assign(x.size(), 0.0);  // up to the element that overflows, as it were one after another
    result.error.assign(x.size(), 0.0);
  }
  for (std::int64_t d = 0; d < head_dim_ && !result.domain; ++d) {
    const auto i = static_cast<std::size_t>(d);
    ElementParameters p = tensors_.at(head_dim_, h, d);
    p.factor = factor_;
    double unscaled = y[d];
    result.magnitude[i] = std::fabs(y[d]);
    if (ranged) {
      const NormElement element = norm_element(shared, x[i], p, static_cast<double>(head_dim_ * heads_));
      unscaled = std::fabs(element.unscaled) + element.blur / factor_.value;
      before[i] = element.value;
      blur[i] = element.blur;
      result.magnitude[i] = std::fabs(element.value) + element.blur;
    }
    result.error[i] = elements.error(x[i], vector.error[i], p, unscaled);
    result.domain = elements.overflows(x[i], vector.error[i], p);
  }
  if (ranged && !result.domain) {
    clamp_errors(result, before, blur, clamp_after_);
    for (std::int64_t d = 0; d < head_dim_; ++d) {
      result.magnitude[static_cast<std::size_t>(d)] = std::fabs(y[d]);
    }
  }
  return result;
}

VectorError OperandBudget::normalised_by_points(const VectorError& vector, const std::vector<double>& x, std::int64_t h,
                                                std::int64_t row, const NormStatistics& shared) const {
  const RoundedNorm norm(norm_, shared, inner_points_, arithmetic_);
  VectorError result;
  result.domain = vector.domain || norm.domain();
  result.magnitude.resize(x.size());
  result.error.resize(x.size());
  std::vector<double> before(x.size()), blur(x.size());
  for (std::size_t i = 0; i < x.size() && !result.domain; ++i) {
    ElementParameters p = tensors_.at(head_dim_, h, static_cast<std::int64_t>(i));
    p.factor = factor_;
    const RoundedNorm::Element element = norm.element(x[i], vector.error[i], p);
    before[i] = element.value;
    blur[i] = element.blur;
    result.error[i] = element.error;
    result.magnitude[i] = std::fabs(element.value) + element.blur;
    result.domain = element.domain;
  }
  if (!result.domain) {
    clamp_errors(result, before, blur, clamp_after_);
  }
  const double* y = exact_.unrounded(norm_stage_).data() + row * head_dim_;
  for (std::size_t i = 0; i < x.size(); ++i) {
    result.magnitude[i] = std::fabs(y[i]);
  }
  return result;
}

void OperandBudget::round_stage(VectorError& vector, qkcts_stage stage, std::int64_t row,
                                const RoundingPoint& point) const {
  round_errors(vector, exact_.unrounded(stage).data() + row * head_dim_, exact_.values[stage].data() + row * head_dim_,
               0, head_dim_, point);
}

// Factor and clamps where no norm is applied.
VectorError OperandBudget::unnormalised(const VectorError& vector, std::int64_t row) {
  const std::vector<double> x = norm_source(row);
  const double* y = exact_.unrounded(norm_stage_).data() + row * head_dim_;
  VectorError result = vector;
  result.held.clear();
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

void OperandBudget::keep(std::int64_t b, std::int64_t h, std::int64_t t, VectorError product) {
  kept_.insert_or_assign(row_index(b, h, t), std::move(product));
}

VectorError OperandBudget::product(std::int64_t b, std::int64_t h, std::int64_t t) {
  auto kept = kept_.extract(row_index(b, h, t));
  return kept ? std::move(kept.mapped()) : row(b, h, t).take_product();
}

OperandRow OperandBudget::row(std::int64_t b, std::int64_t h, std::int64_t t) {
  const std::int64_t at = row_index(b, h, t);
  OperandRow result;
  VectorError vector = first_row(b, h, t);
  const auto pass = [&](std::optional<VectorError> OperandRow::*stage, bool is_last) {
    if (is_last) {
      result.*stage = std::move(vector);
      result.last_stage = stage;
    } else {
      result.*stage = vector;
    }
  };
  const bool turns_at_last = order_ == QKCTS_NORM_THEN_ROPE;
  if (projection_) {
    pass(&OperandRow::projection, !rotates_first() && !transforms_ && !turns_at_last);
  }
  if (rotates_first()) {
    vector = rotated(std::move(vector), b, h, t);
    pass(&OperandRow::rope, !transforms_);
  }
  if (transforms_) {
    settle_source(vector, at);
    vector = norm_.applied != 0 ? normalised(vector, b, h, t) : unnormalised(vector, at);
    round_stage(vector, norm_stage_, at, norm_point_);
    pass(&OperandRow::norm, !turns_at_last);
  }
  if (turns_at_last) {
    vector = rotated(std::move(vector), b, h, t);
    pass(&OperandRow::rope, true);
  }
  if (result.last_stage == nullptr) {
    result.input = std::move(vector);
  }
  return result;
}

}  // namespace qkcts
