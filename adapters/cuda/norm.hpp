// SPDX-License-Identifier: Apache-2.0
// QK-NORM, QK-EPS, QK-GAIN over one group of lanes by one block. The variance is formed in two passes, also where one
// would do: the real number is the same.
#pragma once

#include "adapters/cuda/arithmetic.hpp"
#include "adapters/cuda/block_sum.hpp"
#include "adapters/cuda/element.hpp"

namespace qkcts::cuda {

// `groups` heads of `width` lanes each, which lie `stride` apart; a row before a projection is one head.
template <class Real>
struct LaneGroup {
  Real* first;
  std::int64_t first_head, heads, width, stride;

  QKCTS_DEVICE Real& at(std::int64_t i) const { return first[i / width * stride + i % width]; }
  QKCTS_DEVICE std::int64_t size() const { return heads * width; }
};

struct NormTerms {
  const qkcts_norm* norm;
  const void* gain;
  const void* bias;
  std::uint32_t storage;
  std::uint32_t root_point, reciprocal_point, unit_point, saturates;
};

QKCTS_DEVICE std::int64_t parameter_index(std::uint32_t axes, std::int64_t head, std::int64_t lane,
                                          std::int64_t width) {
  switch (axes) {
    case QKCTS_AXES_SCALAR:
      return 0;
    case QKCTS_AXES_HEAD:
      return head;
    case QKCTS_AXES_HEAD_DIM:
      return lane;
    default:
      return head * width + lane;
  }
}

template <class Real>
QKCTS_DEVICE Real root(const qkcts_norm& norm, Real t) {
  const Real eps = static_cast<Real>(norm.eps);
  switch (norm.root) {
    case QKCTS_OUTSIDE_ROOT:
      return square_root(t) + eps;
    case QKCTS_MAX_ROOT:
      return larger(square_root(t), eps);
    case QKCTS_MAX_INSIDE:
      return square_root(larger(t, eps));
    default:
      return square_root(t + eps);
  }
}

// In place; every thread keeps to the lanes thread, thread + block_threads, ... `partial`: see block_sum.
template <class Real>
QKCTS_DEVICE void normalise(const NormTerms& terms, const LaneGroup<Real>& group, Real* partial) {
  const qkcts_norm& norm = *terms.norm;
  const Real n = static_cast<Real>(group.size());
  Real mean = 0;
  if (norm.center != 0) {
    Real sum = 0;
    for (std::int64_t i = thread_index(); i < group.size(); i += block_threads) sum += group.at(i);
    mean = block_sum(sum, partial) / n;
  }
  Real squares = 0;
  for (std::int64_t i = thread_index(); i < group.size(); i += block_threads) {
    const Real c = group.at(i) - mean;
    squares = fused(c, c, squares);
  }
  squares = block_sum(squares, partial);
  const Real divisor = rounded(terms.root_point, terms.saturates,
                               root(norm, norm.statistic == QKCTS_SUM_SQUARE ? squares : squares / n));
  for (std::int64_t i = thread_index(); i < group.size(); i += block_threads) {
    const std::int64_t head = group.first_head + i / group.width, lane = i % group.width;
    const Real c = group.at(i) - mean;
    Real y = terms.reciprocal_point == 0 ? c / divisor
                                         : c * rounded(terms.reciprocal_point, terms.saturates, Real{1} / divisor);
    y = rounded(terms.unit_point, terms.saturates, y);
    if (norm.gain != QKCTS_GAIN_NONE) {
      const Real w = load<Real>(terms.storage, terms.gain, parameter_index(norm.gain_axes, head, lane, group.width));
      y *= norm.gain == QKCTS_GAIN_ONE_PLUS_W ? Real{1} + w : w;
    }
    if (norm.bias_axes != QKCTS_AXES_NONE)
      y += load<Real>(terms.storage, terms.bias, parameter_index(norm.bias_axes, head, lane, group.width));
    group.at(i) = y;
  }
}

}  // namespace qkcts::cuda
