// SPDX-License-Identifier: Apache-2.0
// Load, clamps, norm, gain, bias, multiplier and rotation of q, k or v in one kernel. A block has one group of the
// norm: one head of a token, or all of them under full_width.
#pragma once

#include "adapters/cuda/norm.hpp"
#include "adapters/cuda/problem.hpp"

namespace qkcts::cuda {

template <class Real>
struct TokenGroup {
  LaneGroup<Real> lanes;
  std::int64_t token;  // of [B, length]
  std::int64_t start;  // of its first lane in [B, heads, length, width]

  QKCTS_DEVICE std::int64_t element(std::int64_t i) const {
    return start + i / lanes.width * lanes.stride + i % lanes.width;
  }
};

template <class Real>
QKCTS_DEVICE void store_group(const Problem& problem, void* stage, const TokenGroup<Real>& group) {
  if (stage == nullptr) return;
  for (std::int64_t i = thread_index(); i < group.lanes.size(); i += block_threads)
    store(problem.storage, stage, group.element(i), group.lanes.at(i));
}

// Where the lanes of pair i stand in the rotated span, before and after the turn.
struct PairPlace {
  std::int64_t a, b, new_a, new_b;
};

QKCTS_DEVICE PairPlace place_of_pair(const Problem& problem, std::int64_t i) {
  const std::int64_t pairs = problem.rope.rotated / 2;
  if (problem.rope.pairing != QKCTS_INTERLEAVED) return {i, i + pairs, i, i + pairs};
  if (problem.rotation.layout == QKCTS_LAYOUT_KEPT) return {2 * i, 2 * i + 1, 2 * i, 2 * i + 1};
  return {2 * i, 2 * i + 1, i, i + pairs};
}

// Between the barriers a thread has pairs of lanes, before and after them lanes. Under layout `deinterleaved` a pair
// moves to places of others: the turned lanes wait in `side.turned` until everybody has read.
template <class Real>
QKCTS_DEVICE void rotate_group(const Problem& problem, const SideProblem& side, const TokenGroup<Real>& group) {
  const std::int64_t rotated_lanes = problem.rope.rotated, pairs = rotated_lanes / 2;
  const std::int64_t angle_row = side.table_row[group.token];
  const std::int64_t span = problem.rope.span == QKCTS_SPAN_LAST ? side.width - rotated_lanes : 0;
  const std::uint32_t saturates = problem.rounding.saturate;
  const auto product = [&](Real x, Real y) { return rounded(side.points.rope_product, saturates, x * y); };
  const auto sum = [&](Real x) { return rounded(side.points.rope, saturates, x); };
  Real* turned = static_cast<Real*>(side.turned != nullptr ? side.turned : side.vectors) + group.start + span;
  sync_block(Barrier::turn_begins);
  for (std::int64_t i = thread_index(); i < group.lanes.heads * pairs; i += block_threads) {
    const std::int64_t head = i / pairs, pair = i % pairs;
    const std::int64_t table = problem.rotation.tables == QKCTS_TABLES_PER_HEAD ? group.lanes.first_head + head : 0;
    const std::int64_t angle = (table * side.table_rows + angle_row) * pairs + pair;
    const Real cosine = static_cast<const Real*>(side.cosine)[angle];
    const Real sine = (problem.rotation.sense == QKCTS_SENSE_NEGATIVE ? Real{-1} : Real{1}) *
                      static_cast<const Real*>(side.sine)[angle];
    const PairPlace place = place_of_pair(problem, pair);
    const Real* from = group.lanes.first + head * group.lanes.stride + span;
    Real* to = turned + head * group.lanes.stride;
    const Real a = from[place.a], b = from[place.b];
    to[place.new_a] = sum(product(a, cosine) - product(b, sine));
    to[place.new_b] = sum(product(b, cosine) + product(a, sine));
  }
  sync_block(Barrier::turn_ends);
  if (side.turned == nullptr) return;
  for (std::int64_t i = thread_index(); i < group.lanes.size(); i += block_threads) {
    const std::int64_t lane = i % side.width - span;
    if (lane >= 0 && lane < rotated_lanes) group.lanes.at(i) = static_cast<const Real*>(side.turned)[group.element(i)];
  }
}

template <class Real>
QKCTS_DEVICE void transform_group(const Problem& problem, const SideProblem& side, const TokenGroup<Real>& group) {
  const std::uint32_t saturates = problem.rounding.saturate;
  const LaneGroup<Real>& lanes = group.lanes;
  for (std::int64_t i = thread_index(); i < lanes.size(); i += block_threads)
    lanes.at(i) = clamped(side.range.clip_before, lanes.at(i));
  if (side.norm.applied != 0) {
    const NormTerms terms{&side.norm,       side.gain,        side.bias,
                          problem.storage,  side.points.root, side.points.reciprocal,
                          side.points.unit, saturates};
    normalise(terms, lanes, static_cast<Real*>(shared_memory()));
  }
  const Real multiplier = side.range.multiplier == 0 ? Real{1} : static_cast<Real>(side.range.multiplier);
  for (std::int64_t i = thread_index(); i < lanes.size(); i += block_threads)
    lanes.at(i) = rounded(side.points.norm, saturates, clamped(side.range.clip_after, lanes.at(i) * multiplier));
  store_group(problem, side.norm_out, group);
}

template <class Real>
QKCTS_KERNEL prepare_vectors(QKCTS_PROBLEM problem, int which) {
  const SideProblem& side = problem.side[which];
  const bool whole_token = side.norm.applied != 0 && side.norm.axis == QKCTS_AXIS_FULL_WIDTH;
  const std::int64_t groups = whole_token ? 1 : side.heads;
  const std::int64_t first_head = block_x() % groups;
  TokenGroup<Real> group;
  group.token = block_x() / groups;
  const std::int64_t b = group.token / side.length, t = group.token % side.length;
  group.start = ((b * side.heads + first_head) * side.length + t) * side.width;
  group.lanes = {static_cast<Real*>(side.vectors) + group.start, first_head, whole_token ? side.heads : 1, side.width,
                 side.length * side.width};
  if (side.projection.x == nullptr) {
    for (std::int64_t i = thread_index(); i < group.lanes.size(); i += block_threads)
      group.lanes.at(i) = load<Real>(problem.storage, side.in, group.element(i));
  }
  if (side.rope_order == QKCTS_ROPE_THEN_NORM) {
    rotate_group(problem, side, group);
    store_group(problem, side.rope_out, group);
  }
  transform_group(problem, side, group);
  if (side.rope_order == QKCTS_NORM_THEN_ROPE) {
    rotate_group(problem, side, group);
    store_group(problem, side.rope_out, group);
  }
}

}  // namespace qkcts::cuda
