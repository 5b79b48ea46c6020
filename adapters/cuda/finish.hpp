// SPDX-License-Identifier: Apache-2.0
// The parts of a row become its output and log-sum-exp; where somebody asks, its weights.
#pragma once

#include "adapters/cuda/logit.hpp"

namespace qkcts::cuda {

template <class Real>
struct WholeRow {
  Real largest, sum;
  bool seen;
};

QKCTS_DEVICE bool has_column(const Problem& problem) {
  return problem.softmax.sink == QKCTS_SINK_COLUMN;
}

// What a part counts in the whole: 1 for the part with the largest score, so that a row in one part keeps its bits.
template <class Real>
QKCTS_DEVICE Real share(const Problem& problem, Real part_largest, Real largest) {
  return part_largest == largest ? Real{1} : power_of_base(problem.softmax.base, part_largest - largest);
}

// The renormalised merge: parts in their order, then the column sink as one key more.
template <class Real>
QKCTS_DEVICE WholeRow<Real> whole_row(const Problem& problem, std::int64_t row, std::int64_t h) {
  const Real* largest = static_cast<const Real*>(problem.part_largest);
  const Real* sum = static_cast<const Real*>(problem.part_sum);
  const Real sink = has_column(problem) ? static_cast<const Real*>(problem.sinks)[h] : -infinity<Real>();
  WholeRow<Real> whole{sink, 0, false};
  QKCTS_ROLLED
  for (std::int64_t s = 0; s < problem.splits; ++s) {
    whole.largest = larger(whole.largest, largest[s * rows_of(problem) + row]);
    whole.seen = whole.seen || problem.part_seen[s * rows_of(problem) + row] != 0;
  }
  QKCTS_ROLLED
  for (std::int64_t s = 0; s < problem.splits; ++s) {
    const std::int64_t at = s * rows_of(problem) + row;
    whole.sum += sum[at] * share(problem, largest[at], whole.largest);
  }
  if (has_column(problem)) whole.sum += share(problem, sink, whole.largest);
  return whole;
}

// No key is visible, and no sink stands in for one.
template <class Real>
QKCTS_DEVICE bool is_empty(const Problem& problem, const WholeRow<Real>& whole) {
  return !whole.seen && !has_column(problem);
}

// Lane d of key k, as the output is made of it.
template <class Real>
QKCTS_DEVICE Real value_lane(const Problem& problem, std::int64_t b, std::int64_t h, std::int64_t k, std::int64_t d) {
  const std::int64_t group = problem.shape.q_heads / problem.shape.kv_heads;
  const std::int64_t kv = problem.heads.mapping == QKCTS_HEADS_TILE ? h % problem.shape.kv_heads : h / group;
  const SideProblem& side = problem.side[value_side];
  const std::int64_t at = ((b * problem.shape.kv_heads + kv) * problem.shape.k_len + k) * side.width + d;
  return side.vectors != nullptr ? static_cast<const Real*>(side.vectors)[at]
                                 : load<Real>(problem.storage, side.in, at);
}

// The weight of every key in a row that sees none.
template <class Real>
QKCTS_DEVICE Real empty_weight(const Problem& problem) {
  if (problem.mask.empty_row == QKCTS_EMPTY_NAN) return static_cast<Real>(NAN);
  if (problem.mask.empty_row == QKCTS_EMPTY_ZERO) return 0;
  const Real uniform = Real{1} / static_cast<Real>(problem.shape.k_len);
  return rounded(problem.rounding.probs, problem.rounding.saturate, uniform);
}

template <class Real>
QKCTS_DEVICE Real log_sum(const Problem& problem, const WholeRow<Real>& whole) {
  if (is_empty(problem, whole))
    return problem.mask.empty_row == QKCTS_EMPTY_NAN ? static_cast<Real>(NAN) : -infinity<Real>();
  return whole.largest + logarithm_to_base(problem.softmax.base, whole.sum);
}

template <class Real>
QKCTS_DEVICE Real returned_log_sum(const Problem& problem, Real lse) {
  if (problem.softmax.base == problem.softmax.lse_base) return lse;
  return lse * static_cast<Real>(problem.softmax.base == QKCTS_BASE_TWO ? 0x1.62e42fefa39efp-1 : 0x1.71547652b82fep+0);
}

template <class Real>
QKCTS_DEVICE Real empty_output(const Problem& problem, std::int64_t b, std::int64_t h, std::int64_t d, Real hidden) {
  // Under `propagated` the hidden values took part with weight 0, and NaN may be left of that.
  Real output = propagates(problem) ? hidden : Real{0};
  if (problem.mask.empty_row == QKCTS_EMPTY_NAN) return static_cast<Real>(NAN);
  if (problem.mask.empty_row == QKCTS_EMPTY_ZERO) return output;
  const Real weight = empty_weight<Real>(problem);
  QKCTS_ROLLED
  for (std::int64_t k = 0; k < problem.shape.k_len; ++k)
    output = fused(weight, value_lane<Real>(problem, b, h, k, d), output);
  return output;
}

// QK-SINK post_scale, and the point of the output.
template <class Real>
QKCTS_DEVICE Real final_output(const Problem& problem, std::int64_t h, const WholeRow<Real>& whole, Real output) {
  if (problem.softmax.sink == QKCTS_SINK_POST_SCALE && !is_empty(problem, whole)) {
    const Real sink = static_cast<const Real*>(problem.sinks)[h];
    output /= Real{1} + exponential(sink - log_sum(problem, whole));
  }
  // -0 and 0 are one number here: whether a block of hidden keys was added must not show.
  return rounded(problem.rounding.output, problem.rounding.saturate, output + Real{0});
}

template <class Real>
QKCTS_KERNEL finish_rows(QKCTS_PROBLEM problem) {
  const std::int64_t row = block_x(), h = row / problem.shape.q_len % problem.shape.q_heads;
  const std::int64_t b = row / problem.shape.q_len / problem.shape.q_heads, dim = problem.shape.v_head_dim;
  const WholeRow<Real> whole = whole_row<Real>(problem, row, h);
  if (thread_index() == 0) {
    if (problem.lse != nullptr)
      static_cast<Real*>(problem.lse)[row] = returned_log_sum(problem, log_sum(problem, whole));
    if (problem.row_largest != nullptr) {
      static_cast<Real*>(problem.row_largest)[row] = whole.largest;
      static_cast<Real*>(problem.row_sum)[row] = whole.sum;
      problem.row_seen[row] = whole.seen ? 1 : 0;
    }
  }
  if (problem.weights != nullptr || problem.output == nullptr) return;
  for (std::int64_t d = thread_index(); d < dim; d += block_threads) {
    Real sum = 0;
    QKCTS_ROLLED
    for (std::int64_t s = 0; s < problem.splits; ++s) {
      const std::int64_t at = s * rows_of(problem) + row;
      const Real part = static_cast<const Real*>(problem.part_output)[at * dim + d];
      sum += part * share(problem, static_cast<const Real*>(problem.part_largest)[at], whole.largest);
    }
    const Real output = is_empty(problem, whole) ? empty_output(problem, b, h, d, sum) : sum / whole.sum;
    store(problem.storage, problem.output, row * dim + d, final_output(problem, h, whole, output));
  }
}

// p of every key of a row, from its logits.
template <class Real>
QKCTS_KERNEL weigh_rows(QKCTS_PROBLEM problem) {
  const std::int64_t row = block_x(), keys = problem.shape.k_len;
  const WholeRow<Real> whole{static_cast<const Real*>(problem.row_largest)[row],
                             static_cast<const Real*>(problem.row_sum)[row], problem.row_seen[row] != 0};
  for (std::int64_t k = thread_index(); k < keys; k += block_threads) {
    Real p = empty_weight<Real>(problem);
    if (!is_empty(problem, whole)) {
      const Real logit = static_cast<const Real*>(problem.masked)[row * keys + k];
      p = logit == -infinity<Real>() ? Real{0} : power_of_base(problem.softmax.base, logit - whole.largest);
      p = rounded(problem.rounding.probs, problem.rounding.saturate, p / whole.sum);
    }
    if (problem.probs != nullptr) store(problem.storage, problem.probs, row * keys + k, p);
    if (problem.weights != nullptr) static_cast<Real*>(problem.weights)[row * keys + k] = p;
  }
}

// The output from weights that were rounded at their point.
template <class Real>
QKCTS_KERNEL sum_weighted(QKCTS_PROBLEM problem) {
  const std::int64_t row = block_x(), h = row / problem.shape.q_len % problem.shape.q_heads;
  const std::int64_t b = row / problem.shape.q_len / problem.shape.q_heads, keys = problem.shape.k_len;
  const WholeRow<Real> whole{static_cast<const Real*>(problem.row_largest)[row],
                             static_cast<const Real*>(problem.row_sum)[row], problem.row_seen[row] != 0};
  const bool empty = is_empty(problem, whole);
  const bool all = propagates(problem) || (empty && problem.mask.empty_row != QKCTS_EMPTY_ZERO);
  const Real* weights = static_cast<const Real*>(problem.weights) + row * keys;
  const Real* masked = static_cast<const Real*>(problem.masked) + row * keys;
  for (std::int64_t d = thread_index(); d < problem.shape.v_head_dim; d += block_threads) {
    Real sum = 0;
    QKCTS_ROLLED
    for (std::int64_t k = 0; k < keys; ++k) {
      if (!all && masked[k] == -infinity<Real>()) continue;
      sum = fused(weights[k], value_lane<Real>(problem, b, h, k, d), sum);
    }
    store(problem.storage, problem.output, row * problem.shape.v_head_dim + d, final_output(problem, h, whole, sum));
  }
}

}  // namespace qkcts::cuda
