// SPDX-License-Identifier: Apache-2.0
// QK-PROJ: one block makes one token of q or k as the product of a row with a matrix.
#pragma once

#include "adapters/cuda/norm.hpp"
#include "adapters/cuda/problem.hpp"

namespace qkcts::cuda {

template <class Real>
QKCTS_KERNEL project(QKCTS_PROBLEM problem, int which) {
  const SideProblem& side = problem.side[which];
  const ProjectionProblem& plan = side.projection;
  const std::int64_t token = block_x();  // of [B, length]
  Real* row = static_cast<Real*>(plan.row) + token * plan.width;
  for (std::int64_t e = thread_index(); e < plan.width; e += block_threads)
    row[e] = load<Real>(problem.storage, plan.x, token * plan.width + e);
  const std::uint32_t saturates = problem.rounding.saturate;
  if (plan.norm.applied != 0) {
    const NormTerms terms{&plan.norm, plan.norm_gain,   plan.norm_bias, problem.storage, 0,
                          0,          plan.points.unit, saturates};
    normalise(terms, LaneGroup<Real>{row, 0, 1, plan.width, plan.width}, static_cast<Real*>(shared_memory()));
    for (std::int64_t e = thread_index(); e < plan.width; e += block_threads)
      row[e] = rounded(plan.points.norm, saturates, row[e]);
  }
  sync_block(Barrier::row_is_written);

  const std::int64_t columns = side.heads * side.width;
  const std::int64_t b = token / side.length, t = token % side.length;
  for (std::int64_t j = thread_index(); j < columns; j += block_threads) {
    Real sum = 0;
    for (std::int64_t e = 0; e < plan.width; ++e)
      sum = fused(row[e], load<Real>(problem.storage, plan.weight, e * columns + j), sum);
    if (plan.bias != nullptr) sum += load<Real>(problem.storage, plan.bias, j);
    sum = rounded(side.points.projection, saturates, sum);
    const std::int64_t at = ((b * side.heads + j / side.width) * side.length + t) * side.width + j % side.width;
    static_cast<Real*>(side.vectors)[at] = sum;
    if (side.projection_out != nullptr) store(problem.storage, side.projection_out, at, sum);
  }
}

}  // namespace qkcts::cuda
