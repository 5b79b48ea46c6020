// SPDX-License-Identifier: Apache-2.0
#include "reference/fast_tier_projection.hpp"

#include <algorithm>
#include <cmath>

#include "reference/double_word_scalar.hpp"

namespace qkcts {
namespace {

constexpr double slack = 1 + 0x1p-30;  // for the roundings of an error itself

}  // namespace

FastProjection::FastProjection(const CaseValues& values, const SideValues& side, const Projection& projection,
                               const Kernels& kernels)
    : side_(side),
      projection_(projection),
      kernels_(kernels),
      source_(values, projection.source, kernels),
      made_(static_cast<std::size_t>(projection.source.batch * projection.source.length), false),
      width_(static_cast<std::size_t>(projection.source.head_dim)) {
  const auto columns = static_cast<std::size_t>(side.heads * side.head_dim);
  stride_ = padded(columns) + padding;  // a group is read as far as padded(its width)
  weight_.assign(width_ * stride_, 0.0);
  column_norm_.assign(stride_, 0.0);
  anchors_.assign(stride_, 0.0);
  std::vector<double> column(padded(width_), 0.0);
  for (std::size_t i = 0; i < columns; ++i) {
    for (std::size_t e = 0; e < width_; ++e) weight_[e * stride_ + i] = column[e] = projection.weight[e * columns + i];
    column_norm_[i] = kernels_.norm_bound(column.data(), width_) * (1 + 0x1p-50);
  }
}

// z = <x^, W_c> by an anchored sum, within E of double_word_dot.hpp for the words of x^, with A = ||x^|| ||W_c||; what
// x^ is off by adds at most ||delta|| ||W_c||. The bias is one more addition.
bool FastProjection::make(std::int64_t group, WordArray& x) {
  const std::int64_t token = side_.token_of(side_.row_of(group, 0));
  if (!made_[static_cast<std::size_t>(token)]) source_.make(token, unused_);
  made_[static_cast<std::size_t>(token)] = true;
  const FastOperands::Row& row = source_.row(token);
  if (!std::isfinite(row.delta)) return false;
  const bool has_low = projection_.source.norm.applied != 0;
  const auto n = static_cast<std::size_t>(side_.heads_in_group() * side_.head_dim);
  const auto first = static_cast<std::size_t>(side_.first_head(group) * side_.head_dim);
  kernels_.anchors(column_norm_.data() + first, padded(n), row.norm, anchors_.data());
  const DotOperands operands{source_.high(token),
                             has_low ? source_.low(token) : nullptr,
                             width_,
                             nullptr,
                             weight_.data() + first,
                             nullptr,
                             stride_};
  kernels_.dot(operands, padded(n), anchors_.data(), x.words());
  const DotSize size(width_, has_low ? 1 : 0);
  for (std::size_t i = 0; i < n; ++i) {
    const double reach = row.norm * column_norm_[first + i];
    x.error[i] = (anchors_[i] * size.grid_error + reach * size.sum_error + 1.01 * u2 * std::fabs(x.h[i]) +
                  row.delta * column_norm_[first + i]) *
                 slack;
  }
  for (std::size_t i = n; i < padded(n); ++i) x.h[i] = x.l[i] = x.error[i] = 0;
  if (projection_.bias.empty()) return true;
  offset_.assign(padded(n), 0.0);
  std::copy_n(projection_.bias.begin() + static_cast<std::ptrdiff_t>(first), n, offset_.begin());
  kernels_.add_each(x.words(), x.error.data(), n, offset_.data());
  return true;
}

}  // namespace qkcts
