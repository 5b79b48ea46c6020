// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_projection.hpp"

#include <algorithm>
#include <cmath>

#include "conformance/budget_alignment.hpp"

namespace qkcts {
namespace {

using enum BudgetTerm;

// The projected numbers are known to 2^-50.
constexpr double exact_stage_accuracy = 0x1p-50;

}  // namespace

ProjectionBudget::ProjectionBudget(const Case& c, const Side& side, const std::vector<double>& exact,
                                   const BudgetArithmetic& arithmetic)
    : case_(c),
      arithmetic_(arithmetic),
      side_(side),
      exact_(exact),
      tensors_(c, side.norm, side.gain, side.bias, arithmetic),
      inner_points_(unit_point(side.points.unit, c.contract.terms.rounding.saturate != 0, arithmetic)),
      norm_point_(rounding_point, side.points.norm, c.contract.terms.rounding.saturate != 0, arithmetic),
      width_(c.inputs.at(side.rows).shape.back()),
      head_dim_(c.shape.head_dim),
      rows_(c.inputs.at(side.rows).values()),
      weight_(c.inputs.at(side.weight).values()) {
  bool exactly_read = true;
  weight_error_.reserve(weight_.size());
  for (double& w : weight_) {
    weight_error_.push_back(arithmetic.operand_error(w, c.inputs.format));
    exactly_read = exactly_read && weight_error_.back() == 0;
    w = std::fabs(w);
    largest_weight_ = std::max(largest_weight_, w + weight_error_.back());
  }
  if (exactly_read) {
    weight_error_.clear();
  }
  if (c.contract.terms.projection.bias != 0) {
    weight_bias_ = c.inputs.at(side.weight_bias).values();
  }
  const auto n = static_cast<double>(width_);
  sum_growth_ = arithmetic.product_growth(projection_dot, n, std::ceil(n / matrix_block) * matrix_block);
  // What a matrix unit drops of an operand when it reads it.
  const double dropped =
      std::max(arithmetic.operand_roundoff(MatrixOperand::q), arithmetic.operand_roundoff(MatrixOperand::k));
  growth_ = joined(sum_growth_, dropped, dropped);
  sum_growth_ *= (1 + dropped) * (1 + dropped);
  if (with_bias()) {
    growth_ = joined(growth_, arithmetic.u(projection_bias));  // one addition more, wherever it comes in
  }
  tokens_.resize(static_cast<std::size_t>(c.shape.batch * side.length));
}

void ProjectionBudget::add_entry(Token& token, double magnitude, double error) const {
  const double size = magnitude + error;
  const double lost = arithmetic_.operand_lambda() * (1 + growth_);
  token.weighted.push_back(error + growth_ * size + lost);
  token.read.push_back(size * (1 + growth_) + lost);
  token.reach.push_back(size);
  if (arithmetic_.smallest_aligned() > 0) {
    token.aligned.push_back({size, magnitude - error, size, 1, 1});
  }
  const double flushed = arithmetic_.unit_underflow() * arithmetic_.lambda(projection_underflow) +
                         arithmetic_.sum_lambda(projection_underflow);
  token.constant += flushed * (1 + growth_) + lost * (size + arithmetic_.operand_lambda());
}

ProjectionBudget::Token ProjectionBudget::plain_token(const std::vector<double>& x,
                                                      const std::vector<double>& error) const {
  Token token;
  for (std::size_t e = 0; e < x.size(); ++e) {
    add_entry(token, std::fabs(x[e]), error[e]);
  }
  return token;
}

ProjectionBudget::Token ProjectionBudget::normed_token(const std::vector<double>& x,
                                                       const std::vector<double>& error) const {
  Token token;
  const NormStatistics shared = norm_statistics(side_.norm, x, error, 0, arithmetic_);
  token.domain = shared.domain;
  const bool kept = norm_keeps_factor(side_.norm, shared);
  token.common = kept ? shared.common : 0;
  const bool folds = side_.norm.bias_axes == QKCTS_AXES_NONE;
  const double lambda = arithmetic_.lambda(projection_underflow);
  const double sum_lambda = arithmetic_.sum_lambda(projection_underflow);
  // Relative errors that come after a product that is lost; where the factor of the norm is kept apart it does not
  // apply to what is lost, which counts twice then (N7).
  const double u = arithmetic_.u(projection_underflow);
  const double later = joined(growth_, arithmetic_.inverse_root(projection_underflow),
                              arithmetic_.quotient(projection_underflow), growth_upper(4, u));
  const double lost = (kept ? 2 : 1 + shared.common) * (1 + later);
  const NormElements elements(side_.norm, shared, {}, arithmetic_);
  for (std::size_t e = 0; e < x.size() && !token.domain; ++e) {
    const ElementParameters p = tensors_.at(width_, 0, static_cast<std::int64_t>(e));
    const NormElement element = norm_element(shared, x[e], p, static_cast<double>(x.size()));
    const double unscaled = std::fabs(element.unscaled) + element.blur;
    const double own = elements.error(x[e], error[e], p, unscaled);
    add_entry(token, std::fabs(element.value) + element.blur, own);
    if (!token.aligned.empty()) {
      AlignedEntry& aligned = token.aligned.back();
      aligned.least = (aligned.least - 2 * element.blur) * (1 - token.common);  // the magnitude was given from above
    }
    token.domain = elements.overflows(x[e], error[e], p);
    if (folds) {
      // The gain may be multiplied into the weights, 1/d after the sum: the factors c, 1/d, g and W in any order.
      const NormFactors f = norm_factors(shared, x[e], error[e], p);
      const double one = std::max({f.c, f.r, f.g});
      const double two = std::max({f.c * f.r, f.c * f.g, f.r * f.g});
      token.constant += (lambda * (1 + one + 2 * two) + sum_lambda * (1 + one + two)) * lost;
      token.weighted.back() += lambda * (1 + 2 * one) * lost;
      token.read.back() += lambda * (1 + 2 * one) * lost;
      token.reach.back() = std::max(token.reach.back(), f.c * std::max(1.0, f.r) * std::max(1.0, f.g));
      token.partial = std::max(token.partial, std::max(1.0, f.c) * std::max(1.0, f.r) * std::max(1.0, f.g));
      if (!token.aligned.empty()) {
        AlignedEntry& aligned = token.aligned.back();
        aligned.matrix = std::min(1.0, f.r) * std::min(1.0, f.g);
        aligned.least = std::min(aligned.least, f.c * aligned.matrix * (1 - shared.common));
        aligned.most = token.reach.back();
        aligned.outside = std::max(1.0, f.c) * std::max(1.0, f.r) * std::max(1.0, f.g);
      }
    }
  }
  return token;
}

// Every entry passes for itself, so that nothing of the norm is common to the row any more, and nothing folds.
ProjectionBudget::Token ProjectionBudget::rounded_token(const std::vector<double>& x,
                                                        const std::vector<double>& error) const {
  Token token;
  const NormStatistics shared = norm_statistics(side_.norm, x, error, 0, arithmetic_);
  const RoundedNorm by_points(side_.norm, shared, inner_points_, arithmetic_);
  const double common = norm_keeps_factor(side_.norm, shared) ? shared.common : 0;
  token.domain = shared.domain || by_points.domain();
  const NormElements elements(side_.norm, shared, {}, arithmetic_);
  for (std::size_t e = 0; e < x.size() && !token.domain; ++e) {
    const ElementParameters p = tensors_.at(width_, 0, static_cast<std::int64_t>(e));
    RoundedNorm::Element y;
    if (inner_points_.exist()) {
      y = by_points.element(x[e], error[e], p);
    } else {
      const NormElement plain = norm_element(shared, x[e], p, static_cast<double>(x.size()));
      const double size = std::fabs(plain.unscaled) + plain.blur;
      const double own = elements.error(x[e], error[e], p, size);
      y = {plain.value, plain.blur, sum_upper(common * size + (1 + common) * own, 16),
           elements.overflows(x[e], error[e], p)};
    }
    const double moved = norm_point_.moved(y.value, y.blur, y.error);
    token.domain = y.domain || !std::isfinite(moved);
    add_entry(token, norm_point_.exact({y.value - y.blur, y.value + y.blur}).size(), moved);
    if (!token.aligned.empty()) {
      token.aligned.back().least -= moved;  // the exact entry may be the other end
    }
  }
  return token;
}

const ProjectionBudget::Token& ProjectionBudget::token(std::int64_t b, std::int64_t t) {
  const std::int64_t index = b * side_.length + t;
  std::optional<Token>& slot = tokens_[static_cast<std::size_t>(index)];
  if (!slot) {
    const double* row = rows_.data() + index * width_;
    const std::vector<double> x(row, row + width_);
    std::vector<double> error;
    error.reserve(x.size());
    for (const double value : x) {
      error.push_back(arithmetic_.operand_error(value, case_.inputs.format));
    }
    const bool rounded = side_.norm.applied != 0 && norm_point_.exists();
    slot = rounded ? rounded_token(x, error) : side_.norm.applied != 0 ? normed_token(x, error) : plain_token(x, error);
  }
  return *slot;
}

void ProjectionBudget::add_alignment(const Token& token, std::int64_t head, std::vector<double>& errors) const {
  const double s = arithmetic_.smallest_aligned();
  const double lambda = arithmetic_.operand_lambda();
  const std::int64_t stride = side_.heads * head_dim_;
  const auto place = [&](std::size_t e, std::size_t i) {
    return static_cast<std::size_t>(static_cast<std::int64_t>(e) * stride + head * head_dim_) + i;
  };
  std::vector<double> sizes(errors.size());
  double most = 0;
  double outside = 1;
  for (std::size_t e = 0; e < token.aligned.size(); ++e) {
    const AlignedEntry& x = token.aligned[e];
    most = std::max(most, x.most);
    outside = std::max(outside, x.outside);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      sizes[i] += x.size * weight_[place(e, i)];
    }
  }
  const double bound = s * outside * (std::max({most, largest_weight_, s}) + lambda * outside);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    double stored = 0;
    for (std::size_t e = 0; bound > sizes[i] && e < token.aligned.size(); ++e) {
      const AlignedEntry& x = token.aligned[e];
      const double moved = weight_error_.empty() ? 0 : weight_error_[place(e, i)];
      const double size = weight_[place(e, i)] + moved;
      if (x.least < s || (size - 2 * moved) * x.matrix < s) {
        const double least = arithmetic_.least_operand() / x.outside;
        stored = std::max(stored, stored_size(unit_factor(x.most, lambda * x.outside, s * x.outside, least),
                                              unit_factor(size, lambda, s, least)));
      }
    }
    errors[i] += sum_growth_ * std::max(0.0, stored - sizes[i]);
  }
}

VectorError ProjectionBudget::row(std::int64_t b, std::int64_t h, std::int64_t t) {
  const Token& x = token(b, t);
  const auto lanes = static_cast<std::size_t>(head_dim_);
  VectorError vector;
  vector.magnitude.resize(lanes);
  vector.error.resize(lanes);
  vector.domain = x.domain;
  vector.common = with_bias() ? 0 : x.common;
  const double* y = exact_.data() + ((b * side_.heads + h) * side_.length + t) * head_dim_;
  for (std::size_t i = 0; i < lanes; ++i) {
    vector.magnitude[i] = std::fabs(y[i]);
  }
  if (x.domain) {
    return vector;
  }
  std::vector<double> reach(lanes);
  const std::int64_t stride = side_.heads * head_dim_;
  for (std::int64_t e = 0; e < width_; ++e) {
    const auto at = static_cast<std::size_t>(e);
    const double* w = weight_.data() + e * stride + h * head_dim_;
    for (std::size_t i = 0; i < lanes; ++i) {
      vector.error[i] += x.weighted[at] * w[i];
      reach[i] += x.reach[at] * w[i];
    }
    if (!weight_error_.empty()) {
      const double* moved = weight_error_.data() + e * stride + h * head_dim_;
      for (std::size_t i = 0; i < lanes; ++i) {
        vector.error[i] += x.read[at] * moved[i];
        reach[i] += x.reach[at] * moved[i];
      }
    }
  }
  if (!x.aligned.empty()) {
    add_alignment(x, h, vector.error);
  }
  const auto n = static_cast<double>(width_);
  const double room = (1 + growth_upper(4 * n + 64, arithmetic_.range_roundoff())) * (1 + x.common) * 1.0001;
  double largest = x.partial * std::max(1.0, largest_weight_);
  for (std::size_t i = 0; i < lanes; ++i) {
    double error = vector.error[i] + x.constant;
    largest = std::max(largest, reach[i]);
    if (with_bias()) {
      // A bias does not carry the factor of the norm (N6). It may be the value that the sum starts from.
      const double bias = weight_bias_[static_cast<std::size_t>(h * head_dim_) + i];
      const double moved = arithmetic_.operand_error(bias, case_.inputs.format);
      const double sum = std::fabs(y[i] - bias) + 2 * exact_stage_accuracy * (std::fabs(y[i]) + std::fabs(bias));
      error = x.common * sum + (1 + x.common) * error + moved + growth_ * (std::fabs(bias) + moved) +
              arithmetic_.sum_lambda(projection_underflow);
      largest = std::max(largest, reach[i] + std::fabs(bias) + moved);
    }
    vector.error[i] = sum_upper(error, 2 * n + 64);
  }
  vector.domain = !(largest * room < arithmetic_.largest());
  return vector;
}

}  // namespace qkcts
