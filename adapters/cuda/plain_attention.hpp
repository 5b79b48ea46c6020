// SPDX-License-Identifier: Apache-2.0
// Tiled attention with an online softmax in plain arithmetic, binary32 or binary64: every clause, every format, and the
// control of the path with the matrix unit. A block has 16 query rows that read one key head, up to `columns` lanes of
// their output, and the keys of one split; it walks over blocks of 32 keys. Eight threads share a row.
//
// What a row becomes does not depend on the rows beside it: block boundaries are multiples of 32 from key 0 on, a block
// in which the row sees nothing leaves its sums as they are, and every sum has its own fixed order.
#pragma once

#include "adapters/cuda/logit.hpp"

namespace qkcts::cuda {

constexpr int plain_rows = 16;
constexpr int plain_keys = 32;
constexpr int plain_lanes = 32;  // of q and k that are in shared memory at a time
constexpr int threads_of_row = 8;
constexpr int keys_of_thread = plain_keys / threads_of_row;

// Lanes of the output per block: bounded by shared memory (48 KiB without asking for more) and registers.
template <class Real>
constexpr int plain_columns = sizeof(Real) == 8 ? 64 : 128;

template <class Real>
struct PlainTile {
  RowTerms<Real> row[plain_rows];
  Real q[plain_rows][plain_lanes + 1];  // one more: columns of k lie in different banks
  Real k[plain_keys][plain_lanes + 1];
  Real weight[plain_rows][plain_keys + 1];
  Real v[plain_keys][plain_columns<Real>];
};

struct PlainPlace {
  std::int64_t b, kv, first_row;
  int row, part;  // of the thread: its row of the tile, and which of the eight it is
};

QKCTS_DEVICE PlainPlace plain_place(const Problem& problem) {
  const std::int64_t rows = problem.shape.q_heads / problem.shape.kv_heads * problem.shape.q_len;
  const std::int64_t tiles = (rows + plain_rows - 1) / plain_rows;
  const std::int64_t head = block_x() / tiles;
  return {head / problem.shape.kv_heads, head % problem.shape.kv_heads, block_x() % tiles * plain_rows,
          thread_index() / threads_of_row, thread_index() % threads_of_row};
}

template <class Real>
QKCTS_DEVICE Real query_lane(const Problem& problem, const RowTerms<Real>& row, std::int64_t d) {
  if (row.t < 0 || d >= problem.shape.head_dim) return 0;
  const Real x = static_cast<const Real*>(problem.side[query_side].vectors)[row.index * problem.shape.head_dim + d];
  const std::uint32_t point = problem.rounding.scaled_q;
  return point == 0 ? x : rounded(point, problem.rounding.saturate, x * row.tau);
}

// Lanes from `lane` on of the rows of the tile and of the keys of the block.
template <class Real>
QKCTS_DEVICE void load_chunk(const Problem& problem, PlainTile<Real>& tile, std::int64_t key_row, std::int64_t block,
                             std::int64_t lane) {
  const std::int64_t dim = problem.shape.head_dim;
  const Real* keys = static_cast<const Real*>(problem.side[key_side].vectors) + key_row * dim;
  for (int i = thread_index(); i < plain_rows * plain_lanes; i += block_threads) {
    const int r = i / plain_lanes, d = i % plain_lanes;
    tile.q[r][d] = query_lane(problem, tile.row[r], lane + d);
  }
  for (int i = thread_index(); i < plain_keys * plain_lanes; i += block_threads) {
    const int j = i / plain_lanes, d = i % plain_lanes;
    const bool exists = block + j < problem.shape.k_len && lane + d < dim;
    tile.k[j][d] = exists ? keys[(block + j) * dim + lane + d] : Real{0};
  }
}

template <class Real>
QKCTS_DEVICE void load_values(const Problem& problem, PlainTile<Real>& tile, std::int64_t key_row, std::int64_t block,
                              std::int64_t column) {
  const std::int64_t dim = problem.shape.v_head_dim;
  const Real* values = static_cast<const Real*>(problem.side[value_side].vectors) + key_row * dim;
  const std::int64_t columns = dim - column < plain_columns<Real> ? dim - column : plain_columns<Real>;
  for (int i = thread_index(); i < plain_keys * columns; i += block_threads) {
    const std::int64_t j = i / columns, d = i % columns;
    tile.v[j][d] = block + j < problem.shape.k_len ? values[(block + j) * dim + column + d] : Real{0};
  }
}

template <class Real>
QKCTS_DEVICE void dot_products(const Problem& problem, PlainTile<Real>& tile, const PlainPlace& place,
                               std::int64_t key_row, std::int64_t block, Real (&dot)[keys_of_thread]) {
  for (std::int64_t lane = 0; lane < problem.shape.head_dim; lane += plain_lanes) {
    sync_block(Barrier::tile_is_read);
    load_chunk(problem, tile, key_row, block, lane);
    sync_block(Barrier::tile_is_written);
    const std::int64_t lanes =
        problem.shape.head_dim - lane < plain_lanes ? problem.shape.head_dim - lane : plain_lanes;
    for (int d = 0; d < lanes; ++d) {
      const Real x = tile.q[place.row][d];
      QKCTS_UNROLL
      for (int i = 0; i < keys_of_thread; ++i) dot[i] = fused(x, tile.k[place.part + i * threads_of_row][d], dot[i]);
    }
  }
}

// Over the eight threads of a row; each gets the result.
template <class Value, class Join>
QKCTS_DEVICE Value over_row(Value value, Join join) {
  for (int lanes = threads_of_row / 2; lanes > 0; lanes /= 2) value = join(value, shuffle_xor(value, lanes));
  return value;
}

// Logits and weights of one block; returns what the sums before it are to be multiplied by. Bit j of `counting`: key j
// of the block has a weight.
template <class Real>
QKCTS_DEVICE Real weigh_block(const Problem& problem, PlainTile<Real>& tile, const PlainPlace& place,
                              std::int64_t block, const Real (&dot)[keys_of_thread], RunningRow<Real>& running,
                              std::uint32_t& counting) {
  Logit<Real> logit[keys_of_thread];
  Real top = -infinity<Real>();
  std::uint64_t sets = 0;  // keys with a weight, and above them visible keys
  QKCTS_UNROLL
  for (int i = 0; i < keys_of_thread; ++i) {
    const int j = place.part + i * threads_of_row;
    logit[i] = logit_of(problem, tile.row[place.row], block + j, dot[i], block_y() == 0);
    if (logit[i].visible) {
      top = larger(top, logit[i].masked);
      sets |= std::uint64_t{1} << (32 + j);
    }
    if (logit[i].counts) sets |= std::uint64_t{1} << j;
  }
  top = over_row(top, [](Real a, Real b) { return larger(a, b); });
  sets = over_row(sets, [](std::uint64_t a, std::uint64_t b) { return a | b; });
  counting = static_cast<std::uint32_t>(sets);
  if (sets >> 32 != 0) running.seen = 1;
  const Real shrink = raise(problem, running, top);
  Real sum = 0;
  QKCTS_UNROLL
  for (int i = 0; i < keys_of_thread; ++i) {
    const Real weight = weight_of(problem, running, logit[i]);
    tile.weight[place.row][place.part + i * threads_of_row] = weight;
    sum += weight;
  }
  running.sum = running.sum * shrink + over_row(sum, [](Real a, Real b) { return a + b; });
  return shrink;
}

template <class Real>
QKCTS_KERNEL attend_plain(QKCTS_PROBLEM problem) {
  constexpr int columns_of_thread = plain_columns<Real> / threads_of_row;
  PlainTile<Real>& tile = *static_cast<PlainTile<Real>*>(shared_memory());
  const PlainPlace place = plain_place(problem);
  const std::int64_t column = block_y() * plain_columns<Real>, split = block_z();
  const std::int64_t key_row = (place.b * problem.shape.kv_heads + place.kv) * problem.shape.k_len;
  if (thread_index() < plain_rows)
    tile.row[thread_index()] = row_terms<Real>(problem, place.b, place.kv, place.first_row + thread_index());
  sync_block(Barrier::rows_are_set);

  RunningRow<Real> running{-infinity<Real>(), 0, 0};
  Real output[columns_of_thread] = {};
  const KeyRange keys = keys_of_tile<plain_keys>(problem, tile.row, plain_rows, split);
  for (std::int64_t block = keys.first; block < keys.last; block += plain_keys) {
    Real dot[keys_of_thread] = {};
    dot_products(problem, tile, place, key_row, block, dot);
    std::uint32_t counting = 0;
    const Real shrink = weigh_block(problem, tile, place, block, dot, running, counting);
    load_values(problem, tile, key_row, block, column);
    sync_block(Barrier::weights_are_set);
    if (propagates(problem)) counting = 0xffffffffu;
    QKCTS_UNROLL
    for (int i = 0; i < columns_of_thread; ++i) output[i] *= shrink;
    // A hidden value is not touched, whatever it is.
    for (int j = 0; j < plain_keys; ++j) {
      if ((counting >> j & 1u) == 0) continue;
      const Real weight = tile.weight[place.row][j];
      QKCTS_UNROLL
      for (int i = 0; i < columns_of_thread; ++i)
        if (column + place.part + i * threads_of_row < problem.shape.v_head_dim)
          output[i] = fused(weight, tile.v[j][place.part + i * threads_of_row], output[i]);
    }
  }

  const RowTerms<Real>& row = tile.row[place.row];
  if (row.t < 0) return;
  const std::int64_t at = split * rows_of(problem) + row.index;
  if (place.part == 0 && block_y() == 0) {
    static_cast<Real*>(problem.part_largest)[at] = running.largest;
    static_cast<Real*>(problem.part_sum)[at] = running.sum;
    problem.part_seen[at] = running.seen;
  }
  QKCTS_UNROLL
  for (int i = 0; i < columns_of_thread; ++i) {
    const std::int64_t d = column + place.part + i * threads_of_row;
    if (d < problem.shape.v_head_dim)
      static_cast<Real*>(problem.part_output)[at * problem.shape.v_head_dim + d] = output[i];
  }
}

}  // namespace qkcts::cuda
