// SPDX-License-Identifier: Apache-2.0
// From a dot product to what the softmax sees: scale, bias, soft-cap, linear bias and mask of one score.
#pragma once

#include "adapters/cuda/arithmetic.hpp"
#include "adapters/cuda/row_terms.hpp"

namespace qkcts::cuda {

template <class Real>
struct Logit {
  Real masked;   // -inf where the key is hidden
  bool visible;  // QK-MASK
  bool counts;   // has a weight: visible, or a hidden NaN that propagates
};

QKCTS_DEVICE std::int64_t broadcast_index(const Problem& problem, std::int64_t batch_stride, std::int64_t head_stride,
                                          std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) {
  return b * batch_stride + h * head_stride + t * problem.shape.k_len + k;
}

template <class Real>
QKCTS_DEVICE Real linear_bias(const Problem& problem, const RowTerms<Real>& row, std::int64_t k) {
  std::int64_t distance = k - row.place;
  if (problem.alibi == QKCTS_ALIBI_SYMMETRIC && distance > 0) distance = -distance;
  if (problem.alibi == QKCTS_ALIBI_LAST_KEY) distance = k - (problem.shape.k_len - 1);
  return row.slope * static_cast<Real>(distance);
}

// Writes the stages scores, capped and masked where they are observed. `writes`: this thread is the one to do so.
template <class Real>
QKCTS_DEVICE Logit<Real> logit_of(const Problem& problem, const RowTerms<Real>& row, std::int64_t k, Real dot,
                                  bool writes) {
  Logit<Real> logit{-infinity<Real>(), false, false};
  if (row.t < 0 || k >= problem.shape.k_len) return logit;
  const qkcts_rounding& points = problem.rounding;
  Real bias = 0;
  if (problem.bias != nullptr)
    bias = load<Real>(
        problem.storage, problem.bias,
        broadcast_index(problem, problem.bias_batch_stride, problem.bias_head_stride, row.b, row.h, row.t, k));
  const Real scale = points.scaled_q != 0 ? Real{1} : row.tau;  // else q has it already
  const Real score = rounded(points.scores, points.saturate, scale * rounded(points.product, points.saturate, dot));
  Real x = score;
  if (problem.bias_order == QKCTS_BIAS_BEFORE_SOFTCAP) x += bias;
  if (problem.softcap > 0) {
    const Real cap = static_cast<Real>(problem.softcap);
    x = cap * hyperbolic_tangent(x / cap);
  }
  if (problem.bias_order == QKCTS_BIAS_AFTER_SOFTCAP) x += bias;
  if (problem.alibi != QKCTS_ALIBI_NONE) x += linear_bias(problem, row, k);
  x = rounded(points.capped, points.saturate, x);

  const bool excluded_by_bias = problem.bias != nullptr && bias == -infinity<Real>();
  bool visible = k >= row.first && k < row.last && !excluded_by_bias;
  if (visible && problem.boolean != nullptr)
    visible = problem.boolean[broadcast_index(problem, problem.boolean_batch_stride, problem.boolean_head_stride, row.b,
                                              row.h, row.t, k)] != 0;
  if (visible && problem.k_documents != nullptr)
    visible = problem.k_documents[row.b * problem.shape.k_len + k] == row.document;
  // QK-HIDDEN: -inf of a bias after the cap is added, and NaN may be left of it.
  const bool added = propagates(problem) && excluded_by_bias && problem.bias_order == QKCTS_BIAS_AFTER_SOFTCAP;
  logit.masked = visible || added ? x : -infinity<Real>();
  logit.visible = visible;
  logit.counts = visible || is_nan(logit.masked);
  if (writes) {
    const std::int64_t at = row.index * problem.shape.k_len + k;
    if (problem.scores != nullptr) static_cast<Real*>(problem.scores)[at] = score;
    if (problem.capped != nullptr) static_cast<Real*>(problem.capped)[at] = x;
    if (problem.masked != nullptr) static_cast<Real*>(problem.masked)[at] = logit.masked;
  }
  return logit;
}

// One row between two blocks of keys: the sums are relative to the weight of `largest`.
template <class Real>
struct RunningRow {
  Real largest, sum;
  std::int32_t seen;  // a key was visible
};

// What the sums so far have to be multiplied by, now that the maximum is `top`.
template <class Real>
QKCTS_DEVICE Real raise(const Problem& problem, RunningRow<Real>& row, Real top) {
  if (!(top > row.largest)) return Real{1};
  const Real shrink = power_of_base(problem.softmax.base, row.largest - top);
  row.largest = top;
  return shrink;
}

template <class Real>
QKCTS_DEVICE Real weight_of(const Problem& problem, const RunningRow<Real>& row, const Logit<Real>& logit) {
  if (!logit.counts) return Real{0};
  // Only -inf so far: any finite shift gives the weight 0.
  const Real shift = row.largest == -infinity<Real>() ? Real{0} : row.largest;
  return power_of_base(problem.softmax.base, logit.masked - shift);
}

}  // namespace qkcts::cuda
