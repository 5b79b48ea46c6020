// SPDX-License-Identifier: Apache-2.0
// Tiled attention with an online softmax on the matrix unit, for binary16 and bfloat16: m16n8k16, sums in binary32. A
// block has 64 query rows that read one key head, 16 per warp, and the keys of one split; it walks over blocks of 32
// keys, of which the next is copied into shared memory while this one is worked on. Scores and weights stay in
// registers. As in the plain path no row depends on the rows beside it.
#pragma once

#include "adapters/cuda/logit.hpp"
#include "adapters/cuda/operands.hpp"

namespace qkcts::cuda {

constexpr int tensor_rows = 64;
constexpr int tensor_keys = 32;
constexpr int rows_of_warp = 16;
constexpr int key_tiles = tensor_keys / 8;
constexpr int chunk = 8;        // numbers of 16 bits that one copy moves
constexpr int row_padding = 8;  // so that rows of a matrix lie in different banks
constexpr std::int64_t widest_operand = 128;

// Shared memory: queries [parts, 64, D + 8], two buffers of keys [parts, 32, D + 8] and of values [32, Dv + 8] each,
// and what is known of the rows. D and Dv are padded.
struct TensorTile {
  std::uint16_t* query;
  std::uint16_t* keys;    // of buffer 0
  std::uint16_t* values;  // of buffer 0
  std::int64_t buffer;    // from one buffer to the other
  RowTerms<float>* row;
  std::int64_t lanes, columns;  // D and Dv, with the padding of a row
};

constexpr std::int64_t tensor_tile_bytes(std::int64_t parts, std::int64_t padded, std::int64_t padded_values) {
  const std::int64_t lanes = padded + row_padding, columns = padded_values + row_padding;
  const std::int64_t numbers = parts * (tensor_rows + 2 * tensor_keys) * lanes + 2 * tensor_keys * columns;
  return numbers * 2 + tensor_rows * static_cast<std::int64_t>(sizeof(RowTerms<float>));
}

QKCTS_DEVICE TensorTile tensor_tile(const Problem& problem) {
  const std::int64_t parts = problem.side[query_side].parts;
  TensorTile tile{};
  tile.lanes = problem.side[query_side].padded + row_padding;
  tile.columns = problem.side[value_side].padded + row_padding;
  tile.row = static_cast<RowTerms<float>*>(shared_memory());
  tile.query = reinterpret_cast<std::uint16_t*>(tile.row + tensor_rows);
  tile.keys = tile.query + parts * tensor_rows * tile.lanes;
  tile.values = tile.keys + parts * tensor_keys * tile.lanes;
  tile.buffer = parts * tensor_keys * tile.lanes + tensor_keys * tile.columns;
  return tile;
}

// Rows of one operand, all parts, into [parts, rows, lanes].
template <class RowIndex>
QKCTS_DEVICE void copy_operand(const Problem& problem, const SideProblem& side, int rows, std::int64_t lanes,
                               std::uint16_t* to, RowIndex row_of) {
  const int chunks = static_cast<int>(side.padded) / chunk;
  for (int i = thread_index(); i < side.parts * rows * chunks; i += block_threads) {
    const int part = i / chunks / rows, r = i / chunks % rows, c = i % chunks * chunk;
    const std::int64_t row = row_of(r);
    const std::uint16_t* from = side.operands + operand_index(problem, side, part, row < 0 ? 0 : row) + c;
    copy_async(to + (part * rows + r) * lanes + c, from, row >= 0);
  }
}

QKCTS_DEVICE void copy_block(const Problem& problem, const TensorTile& tile, int buffer, std::int64_t key_row,
                             std::int64_t block) {
  const auto row_of = [&](int j) { return block + j < problem.shape.k_len ? key_row + block + j : std::int64_t{-1}; };
  copy_operand(problem, problem.side[key_side], tensor_keys, tile.lanes, tile.keys + buffer * tile.buffer, row_of);
  copy_operand(problem, problem.side[value_side], tensor_keys, tile.columns, tile.values + buffer * tile.buffer,
               row_of);
}

template <bool is_bfloat16>
QKCTS_DEVICE void multiply(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  if constexpr (is_bfloat16) {
    multiply_bfloat16(c, a, b);
  } else {
    multiply_binary16(c, a, b);
  }
}

// Parts are bfloat16 whatever the storage format is; vectors in one part, values and weights have the storage format.
template <bool is_bfloat16, int parts>
constexpr bool scores_in_bfloat16 = is_bfloat16 || parts == split_parts;

// Scores of the 16 rows of this warp, tile n of 8 keys in dot[n]. Three parts: the large products have an accumulator
// of their own, the five small ones share another, whose roundings are 2^-7 times theirs.
template <bool is_bfloat16, int parts>
QKCTS_DEVICE void dots_on_unit(const Problem& problem, const TensorTile& tile, int buffer, float (&dot)[key_tiles][4]) {
  constexpr bool narrow = scores_in_bfloat16<is_bfloat16, parts>;
  const int lane = thread_index() % warp_threads, first_row = thread_index() / warp_threads * rows_of_warp;
  float small[key_tiles][4] = {};
  for (std::int64_t d = 0; d < problem.side[query_side].padded; d += unit_depth) {
    std::uint32_t q[parts][4];
    QKCTS_UNROLL
    for (int p = 0; p < parts; ++p)
      load_matrices(q[p], tile.query + (p * tensor_rows + first_row + lane % 16) * tile.lanes + d + lane / 16 * 8);
    QKCTS_UNROLL
    for (int n = 0; n < key_tiles; ++n) {
      std::uint32_t k[parts][2];
      QKCTS_UNROLL
      for (int p = 0; p < parts; ++p)
        load_matrices(k[p], tile.keys + buffer * tile.buffer + (p * tensor_keys + n * 8 + lane % 8) * tile.lanes + d +
                                lane % 16 / 8 * 8);
      multiply<narrow>(dot[n], q[0], k[0]);
      if constexpr (parts == split_parts) {
        multiply<narrow>(small[n], q[2], k[0]);
        multiply<narrow>(small[n], q[1], k[1]);
        multiply<narrow>(small[n], q[0], k[2]);
        multiply<narrow>(small[n], q[1], k[0]);
        multiply<narrow>(small[n], q[0], k[1]);
      }
    }
  }
  if constexpr (parts == split_parts) {
    QKCTS_UNROLL
    for (int n = 0; n < key_tiles; ++n) {
      QKCTS_UNROLL
      for (int e = 0; e < 4; ++e) dot[n][e] += small[n][e];
    }
  }
}

// A score whose vectors do not split, in plain arithmetic.
QKCTS_DEVICE float plain_dot(const Problem& problem, std::int64_t query_row, std::int64_t key_row) {
  const std::int64_t dim = problem.shape.head_dim;
  const float* q = static_cast<const float*>(problem.side[query_side].vectors) + query_row * dim;
  const float* k = static_cast<const float*>(problem.side[key_side].vectors) + key_row * dim;
  float sum = 0;
  for (std::int64_t d = 0; d < dim; ++d) sum = fused(q[d], k[d], sum);
  return sum;
}

// Over the four lanes that share a row.
template <class Join>
QKCTS_DEVICE float over_quad(float value, Join join) {
  for (int lanes = 2; lanes > 0; lanes /= 2) value = join(value, shuffle_xor(value, lanes));
  return value;
}

QKCTS_DEVICE std::uint32_t or_over_quad(std::uint32_t value) {
  value |= shuffle_xor(value, 2);
  return value | shuffle_xor(value, 1);
}

// Dot products become weights, in place. Each thread has the entries 2t, 2t + 1 of the rows g and g + 8 (half 0 and 1)
// of every tile of 8 keys.
template <int parts>
QKCTS_DEVICE void weigh_tile(const Problem& problem, const RowTerms<float>& row, std::int64_t key_row,
                             std::int64_t block, int half, float (&dot)[key_tiles][4], RunningRow<float>& running,
                             float& shrink) {
  Logit<float> logit[key_tiles][2];
  float top = -infinity<float>();
  std::uint32_t seen = 0;
  QKCTS_UNROLL
  for (int n = 0; n < key_tiles; ++n) {
    QKCTS_UNROLL
    for (int e = 0; e < 2; ++e) {
      const std::int64_t k = block + n * 8 + thread_index() % 4 * 2 + e;
      float product = dot[n][2 * half + e];
      if constexpr (parts == split_parts) {
        if (row.t >= 0 && k < problem.shape.k_len &&
            (problem.side[query_side].irregular[row.index] | problem.side[key_side].irregular[key_row + k]) != 0)
          product = plain_dot(problem, row.index, key_row + k);
      }
      logit[n][e] = logit_of(problem, row, k, product, true);
      if (!logit[n][e].visible) continue;
      top = larger(top, logit[n][e].masked);
      seen = 1;
    }
  }
  if (or_over_quad(seen) != 0) running.seen = 1;
  shrink = raise(problem, running, over_quad(top, [](float a, float b) { return larger(a, b); }));
  float sum = 0;
  QKCTS_UNROLL
  for (int n = 0; n < key_tiles; ++n) {
    QKCTS_UNROLL
    for (int e = 0; e < 2; ++e) {
      const float weight = weight_of(problem, running, logit[n][e]);
      dot[n][2 * half + e] = weight;
      sum += weight;
    }
  }
  running.sum = running.sum * shrink + over_quad(sum, [](float a, float b) { return a + b; });
}

template <bool is_bfloat16>
QKCTS_DEVICE std::uint32_t packed(float low, float high) {
  const auto narrow = [](float x) { return is_bfloat16 ? to_bfloat16(x) : to_binary16(x); };
  return std::uint32_t{narrow(high)} << 16 | narrow(low);
}

// output += weights * values: the accumulators of the scores are laid out as the left operand of this product.
template <bool is_bfloat16, int column_tiles>
QKCTS_DEVICE void add_values(const Problem& problem, const TensorTile& tile, int buffer,
                             const float (&weight)[key_tiles][4], float (&output)[column_tiles][4]) {
  const int lane = thread_index() % warp_threads;
  QKCTS_UNROLL
  for (int step = 0; step < tensor_keys / unit_depth; ++step) {
    const float(&left)[4] = weight[2 * step];
    const float(&right)[4] = weight[2 * step + 1];
    const std::uint32_t p[4] = {packed<is_bfloat16>(left[0], left[1]), packed<is_bfloat16>(left[2], left[3]),
                                packed<is_bfloat16>(right[0], right[1]), packed<is_bfloat16>(right[2], right[3])};
    QKCTS_UNROLL
    for (int n = 0; n < column_tiles; ++n) {
      if (n * 8 < problem.side[value_side].padded) {
        std::uint32_t v[2];
        load_transposed(v, tile.values + buffer * tile.buffer + (step * unit_depth + lane % 16) * tile.columns + n * 8);
        multiply<is_bfloat16>(output[n], p, v);
      }
    }
  }
}

template <int column_tiles>
QKCTS_DEVICE void store_part(const Problem& problem, const RowTerms<float>& row, std::int64_t split, int half,
                             const RunningRow<float>& running, const float (&output)[column_tiles][4]) {
  if (row.t < 0) return;
  const std::int64_t at = split * rows_of(problem) + row.index, dim = problem.shape.v_head_dim;
  if (thread_index() % 4 == 0) {
    static_cast<float*>(problem.part_largest)[at] = running.largest;
    static_cast<float*>(problem.part_sum)[at] = running.sum;
    problem.part_seen[at] = running.seen;
  }
  QKCTS_UNROLL
  for (int n = 0; n < column_tiles; ++n) {
    QKCTS_UNROLL
    for (int e = 0; e < 2; ++e) {
      const std::int64_t d = n * 8 + thread_index() % 4 * 2 + e;
      if (d < dim) static_cast<float*>(problem.part_output)[at * dim + d] = output[n][2 * half + e];
    }
  }
}

// column_tiles * 8 >= Dv; parts: of q and k.
template <bool is_bfloat16, int parts, int column_tiles>
QKCTS_KERNEL attend_tensor(QKCTS_PROBLEM problem) {
  const TensorTile tile = tensor_tile(problem);
  const std::int64_t rows = problem.shape.q_heads / problem.shape.kv_heads * problem.shape.q_len;
  const std::int64_t tiles = (rows + tensor_rows - 1) / tensor_rows, head = block_x() / tiles, split = block_z();
  const std::int64_t b = head / problem.shape.kv_heads, kv = head % problem.shape.kv_heads;
  const std::int64_t key_row = head * problem.shape.k_len;
  if (thread_index() < tensor_rows)
    tile.row[thread_index()] = row_terms<float>(problem, b, kv, block_x() % tiles * tensor_rows + thread_index());
  sync_block(Barrier::rows_are_set);

  const KeyRange keys = keys_of_tile<tensor_keys>(problem, tile.row, tensor_rows, split);
  copy_operand(problem, problem.side[query_side], tensor_rows, tile.lanes, tile.query,
               [&](int r) { return tile.row[r].t < 0 ? std::int64_t{-1} : tile.row[r].index; });
  copy_block(problem, tile, 0, key_row, keys.first);
  commit_copies();

  const int first_row = thread_index() / warp_threads * rows_of_warp + thread_index() % warp_threads / 4;
  const RowTerms<float>& upper = tile.row[first_row];
  const RowTerms<float>& lower = tile.row[first_row + 8];
  const bool warp_has_rows = tile.row[thread_index() / warp_threads * rows_of_warp].t >= 0;
  RunningRow<float> running[2] = {{-infinity<float>(), 0, 0}, {-infinity<float>(), 0, 0}};
  float output[column_tiles][4] = {};
  int buffer = 0;
  for (std::int64_t block = keys.first; block < keys.last; block += tensor_keys, buffer ^= 1) {
    if (block + tensor_keys < keys.last) copy_block(problem, tile, buffer ^ 1, key_row, block + tensor_keys);
    commit_copies();  // an empty group where there is no next block
    wait_copies<1>();
    sync_block(Barrier::copies_are_there);
    if (warp_has_rows) {
      float weight[key_tiles][4] = {}, shrink[2];
      dots_on_unit<is_bfloat16, parts>(problem, tile, buffer, weight);
      weigh_tile<parts>(problem, upper, key_row, block, 0, weight, running[0], shrink[0]);
      weigh_tile<parts>(problem, lower, key_row, block, 1, weight, running[1], shrink[1]);
      QKCTS_UNROLL
      for (int n = 0; n < column_tiles; ++n) {
        QKCTS_UNROLL
        for (int e = 0; e < 4; ++e) output[n][e] *= shrink[e / 2];
      }
      add_values<is_bfloat16>(problem, tile, buffer, weight, output);
    }
    sync_block(Barrier::copies_are_read);
  }
  wait_copies<0>();
  store_part(problem, upper, split, 0, running[0], output);
  store_part(problem, lower, split, 1, running[1], output);
}

}  // namespace qkcts::cuda
