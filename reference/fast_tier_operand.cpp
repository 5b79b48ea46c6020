// SPDX-License-Identifier: Apache-2.0
#include "reference/fast_tier_operand.hpp"

#include <algorithm>
#include <cmath>

#include "reference/double_word_scalar.hpp"
#include "reference/fast_tier_projection.hpp"
#include "reference/rope.hpp"

namespace qkcts {
namespace {

constexpr double slack = 1 + 0x1p-30;  // for the roundings of an error itself

// The largest power of two of which every entry is a multiple; 0 if all are 0.
double grid_of(const std::vector<double>& values) {
  double grid = 0;
  for (const double x : values) {
    if (x == 0) continue;
    int exponent = 0;
    auto significand = static_cast<std::int64_t>(std::ldexp(std::frexp(std::fabs(x), &exponent), 53));
    int zeros = 0;
    for (; (significand & 1) == 0; significand >>= 1) ++zeros;
    const double own = std::ldexp(1.0, exponent - 53 + zeros);
    grid = grid == 0 ? own : std::min(grid, own);
  }
  return grid;
}

}  // namespace

bool is_moderate(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double x) {
    const double size = std::fabs(x);
    return size == 0 || (size >= 0x1p-200 && size <= 0x1p200);
  });
}

FastOperands::~FastOperands() = default;

FastOperands::FastOperands(const CaseValues& values, Side side, const Kernels& kernels)
    : FastOperands(values, values.side(side), kernels) {
  keeps_scale_ = side != Side::value;
  const Projection* projection = values.projection(side);
  if (projection == nullptr) return;
  projection_ = std::make_unique<FastProjection>(values, side_, *projection, kernels);
  is_plain_ = false;
  grid_ = 0;
}

FastOperands::FastOperands(const CaseValues& values, const SideValues& source, const Kernels& kernels)
    : values_(values), side_(source), kernels_(kernels), keeps_scale_(false), width_(source.head_dim) {
  const std::int64_t rows = side_.batch * side_.heads * side_.length;
  numbers_ = static_cast<std::size_t>(rows * width_) + padding;
  high_ = std::make_unique_for_overwrite<double[]>(numbers_);
  std::fill_n(high_.get() + rows * width_, padding, 0.0);
  low_.assign(padded(static_cast<std::size_t>(width_)), 0.0);
  rows_.resize(static_cast<std::size_t>(rows));
  is_plain_ = side_.norm.applied == 0 && side_.rope_order == QKCTS_ROPE_NONE;
  if (is_plain_) grid_ = grid_of(side_.x);
  const qkcts_norm& norm = side_.norm;
  if (norm.applied == 0) return;
  for (std::int64_t h = 0; h < side_.heads; ++h) {
    for (std::int64_t lane = 0; lane < width_; ++lane) {
      if (norm.gain != QKCTS_GAIN_NONE) {
        const double w = SideValues::parameter(side_.gain, norm.gain_axes, h, lane, width_);
        const Double factor = norm.gain == QKCTS_GAIN_ONE_PLUS_W ? dw::two_sum(1.0, w) : Double{w, 0};  // exact
        factor_high_.push_back(factor.h);
        factor_low_.push_back(factor.l);
      }
      if (norm.bias_axes != QKCTS_AXES_NONE)
        offset_.push_back(SideValues::parameter(side_.bias, norm.bias_axes, h, lane, width_));
    }
  }
}

void FastOperands::rotate_group(std::int64_t group, WordArray& x) {
  const std::int64_t pairs = rotated_lanes(values_.terms.rope, width_) / 2;
  const auto n = static_cast<std::size_t>(pairs);
  for (LineNumbers* array : {&pair_[0], &pair_[1], &pair_[2], &pair_[3], &pair_[4], &pair_[5], &cos_, &sin_})
    array->assign(padded(n), 0.0);
  const double sense = values_.terms.rotation.sense == QKCTS_SENSE_NEGATIVE ? -1 : 1;
  for (std::int64_t member = 0; member < side_.heads_in_group(); ++member) {
    const auto head = static_cast<std::size_t>(member * width_);
    const std::int64_t row = side_.row_of(group, member);
    const std::size_t entry = values_.table_entry(side_.head_of(row), side_.position_of(row));
    for (std::size_t i = 0; i < n; ++i) {
      const auto [a, b] = pair_lanes(values_.terms.rope, width_, static_cast<std::int64_t>(i));
      cos_[i] = values_.cos[entry + i];
      sin_[i] = sense * values_.sin[entry + i];
      pair_[0][i] = x.h[head + a];
      pair_[1][i] = x.l[head + a];
      pair_[2][i] = x.error[head + a];
      pair_[3][i] = x.h[head + b];
      pair_[4][i] = x.l[head + b];
      pair_[5][i] = x.error[head + b];
    }
    kernels_.rotate({pair_[0].data(), pair_[1].data()}, pair_[2].data(), {pair_[3].data(), pair_[4].data()},
                    pair_[5].data(), cos_.data(), sin_.data(), n);
    for (std::size_t i = 0; i < n; ++i) {
      const auto [a, b] = left_lanes(values_.terms, width_, static_cast<std::int64_t>(i));
      x.h[head + a] = pair_[0][i];
      x.l[head + a] = pair_[1][i];
      x.error[head + a] = pair_[2][i];
      x.h[head + b] = pair_[3][i];
      x.l[head + b] = pair_[4][i];
      x.error[head + b] = pair_[5][i];
    }
  }
}

// 1/d. t is within t_error (relative) of the statistic. eps is exact, so t + eps is within max(t_error, 0) + 2 u^2; the
// root halves what is below it (to first order; a factor 1 + t_error covers the rest) and adds 3.126 u^2; maxima move
// by no more than their arguments; the quotient adds 11 u^2.
FastOperands::Divisor FastOperands::divisor(Word t, double t_error) const {
  const double eps = side_.norm.eps;
  const auto root_error = [](double error) { return error * (0.5 + error) + dw::root_bound * u2; };
  const auto root = [](Double x) { return x.h == 0 ? Double{0, 0} : dw::square_root(x); };
  const auto larger = [](Double x, double y) { return x.h > y || (x.h == y && x.l >= 0) ? x : Double{y, 0}; };
  Double d{0, 0};
  double error = 0;
  switch (side_.norm.root) {
    case QKCTS_OUTSIDE_ROOT:
      d = dw::add(root(of(t)), eps);
      error = root_error(t_error) + dw::add_number_bound * u2;
      break;
    case QKCTS_MAX_ROOT:
      d = larger(root(of(t)), eps);
      error = root_error(t_error);
      break;
    case QKCTS_MAX_INSIDE:
      d = root(larger(of(t), eps));
      error = root_error(t_error);
      break;
    default:
      d = root(dw::add(of(t), eps));
      error = root_error(t_error + dw::add_number_bound * u2);
  }
  Divisor result;
  result.is_known = d.h >= 0x1p-300 && d.h <= 0x1p300 && error < 0x1p-30;
  if (!result.is_known) return result;
  result.inverse = of(dw::divide(Double{1, 0}, d));
  result.error = (error * (1 + 0x1p-28) + dw::divide_bound * u2) * slack;
  return result;
}

// x becomes the vector, `common` the scale of all rows of the group, `normed` the values of the stage.
// Mean: the sum is within 3.01 (n + 8) u^2 sum |x|, its quotient by n within 11 u^2.
// Statistic: with the errors of the entries, |t' - t| <= 2 ||c|| ||e|| + ||e||^2, relative 2 r + r^2, r = ||e||/||c||.
bool FastOperands::normalise(std::int64_t group, WordArray& x, Row& common, WordArray& normed) {
  const qkcts_norm& norm = side_.norm;
  const auto n = static_cast<std::size_t>(side_.heads_in_group() * width_);
  const auto count = static_cast<double>(n);
  if (norm.center != 0) {
    double size = 0;
    for (std::size_t i = 0; i < n; ++i) size += std::fabs(x.h[i]);
    double carried = 0;  // of errors that the entries have already
    for (std::size_t i = 0; i < n; ++i) carried += x.error[i];
    // The low words, if any, are summed as numbers of their own.
    const Word sum = kernels_.sum(x.h.data(), n);
    const Word rest = kernels_.sum(x.l.data(), n);
    const Double total = dw::add(of(sum), of(rest));
    const Double mean = dw::divide(total, Double{count, 0});
    const double of_sum = 3.01 * (count + 8) * u2 * size * 1.001 + dw::add_bound * u2 * std::fabs(total.h);
    const double mean_error = ((of_sum + carried) / count + dw::divide_bound * u2 * std::fabs(mean.h)) * slack;
    kernels_.subtract(x.words(), x.error.data(), n, of(mean), mean_error);
    for (std::size_t i = n; i < padded(n); ++i) x.h[i] = x.l[i] = x.error[i] = 0;
  }
  const Word sum = kernels_.sum_of_squares(x.words(), n);
  Double t = of(sum);
  double t_error = (3.01 * (count + 8) + dw::multiply_bound) * u2;
  const double error_norm = kernels_.norm_bound(x.error.data(), n);
  if (error_norm > 0) {
    if (!(sum.h > 0x1p-600)) return false;
    const double ratio = error_norm / std::sqrt(sum.h) * slack;
    t_error += ratio * (2 + ratio);
  }
  if (norm.statistic == QKCTS_MEAN_SQUARE) {
    t = dw::divide(t, Double{count, 0});
    t_error += dw::divide_bound * u2;
  }
  if (t.h != 0 && !(t.h >= 0x1p-600 && t.h <= 0x1p600)) return false;
  const Divisor inverse = divisor(of(t), t_error * slack);
  if (!inverse.is_known) return false;

  if (!factor_high_.empty()) {
    const auto from = static_cast<std::size_t>(side_.first_head(group) * width_);
    group_factor_[0].assign(padded(n), 0.0);
    group_factor_[1].assign(padded(n), 0.0);
    std::copy_n(factor_high_.begin() + static_cast<std::ptrdiff_t>(from), n, group_factor_[0].begin());
    std::copy_n(factor_low_.begin() + static_cast<std::ptrdiff_t>(from), n, group_factor_[1].begin());
    kernels_.multiply_each(x.words(), x.error.data(), n, {group_factor_[0].data(), group_factor_[1].data()});
  }
  kernels_.scale(x.words(), x.error.data(), n, inverse.inverse, inverse.error, normed.words(), normed.error.data());
  common.scale = inverse.inverse;
  common.scale_error = inverse.error;
  if (!offset_.empty()) {
    const auto from = static_cast<std::size_t>(side_.first_head(group) * width_);
    group_offset_.assign(padded(n), 0.0);
    std::copy_n(offset_.begin() + static_cast<std::ptrdiff_t>(from), n, group_offset_.begin());
    kernels_.add_each(normed.words(), normed.error.data(), n, group_offset_.data());
    x = normed;
    common.scale = {1, 0};
    common.scale_error = 0;
  }
  return true;
}

void FastOperands::keep(std::int64_t group, const WordArray& x, const Row& common, bool is_known) {
  const auto width = static_cast<std::size_t>(width_);
  head_.assign(padded(width), 0.0);
  const auto norm_bound = [&](const double* numbers) {
    if (width % 8 == 0) return kernels_.norm_bound(numbers, width);
    std::copy_n(numbers, width, head_.begin());  // whole vectors are read, and those of the next head stand there
    return kernels_.norm_bound(head_.data(), width);
  };
  for (std::int64_t member = 0; member < side_.heads_in_group(); ++member) {
    const std::int64_t row = side_.row_of(group, member);
    Row& kept = rows_[static_cast<std::size_t>(row)];
    kept = common;
    const auto from = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(member) * width);
    const auto to = static_cast<std::ptrdiff_t>(row * width_);
    if (!is_known) {
      kept = {{1, 0}, 0, 1, HUGE_VAL};
      std::fill_n(high_.get() + to, width, 0.0);
      continue;
    }
    std::copy_n(x.h.begin() + from, width, high_.get() + to);
    std::uint64_t low_words = 0;
    for (std::size_t i = 0; i < width; ++i) low_words += x.l[static_cast<std::size_t>(from) + i] != 0 ? 1 : 0;
    if (low_words > 0 && !has_low_) {
      has_low_ = true;
      low_.assign(numbers_, 0.0);
    }
    if (has_low_) std::copy_n(x.l.begin() + from, width, low_.begin() + to);
    // The dot products take h and l apart; ||h|| serves for both, since |l| <= u |h|.
    kept.norm = norm_bound(x.h.data() + from) * (1 + 0x1p-50);
    kept.delta = norm_bound(x.error.data() + from);
    if (kept.norm != 0 && !(kept.norm >= 0x1p-400 && kept.norm <= 0x1p400)) kept.delta = HUGE_VAL;
  }
}

bool FastOperands::make(std::int64_t group, GroupWords& stages) {
  const auto n = static_cast<std::size_t>(side_.heads_in_group() * width_);
  WordArray& x = x_;
  x.reserve(n);
  bool is_known = true;
  if (projection_) {
    is_known = projection_->make(group, x);
    stages.projected = x;
  } else {
    for (std::int64_t member = 0; member < side_.heads_in_group(); ++member)
      std::copy_n(side_.row(side_.row_of(group, member)).begin(), width_,
                  x.h.begin() + static_cast<std::ptrdiff_t>(member * width_));
    std::fill(x.h.begin() + static_cast<std::ptrdiff_t>(n), x.h.end(), 0.0);
    std::fill(x.l.begin(), x.l.end(), 0.0);
    std::fill(x.error.begin(), x.error.end(), 0.0);
  }
  stages.normed.reserve(n);
  stages.roped.reserve(n);
  Row common;
  if (is_known && side_.rope_order == QKCTS_ROPE_THEN_NORM) {
    rotate_group(group, x);
    stages.roped = x;
  }
  if (is_known && side_.norm.applied != 0) is_known = normalise(group, x, common, stages.normed);
  if (is_known && side_.rope_order == QKCTS_NORM_THEN_ROPE) {
    rotate_group(group, x);
    kernels_.scale(x.words(), x.error.data(), n, common.scale, common.scale_error, stages.roped.words(),
                   stages.roped.error.data());
  }
  if (!keeps_scale_ && side_.norm.applied != 0 && is_known) {
    keep(group, stages.normed, {}, true);
  } else {
    keep(group, x, common, is_known);
  }
  return is_known;
}

}  // namespace qkcts
