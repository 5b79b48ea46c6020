// SPDX-License-Identifier: Apache-2.0
#include "adapters/cuda/launches.hpp"

#include "adapters/cuda/finish.hpp"
#include "adapters/cuda/plain_attention.hpp"
#include "adapters/cuda/projection.hpp"
#include "adapters/cuda/prologue.hpp"
#include "adapters/cuda/start_kernel.hpp"
#include "adapters/cuda/tensor_attention.hpp"

namespace qkcts::cuda {

namespace {

constexpr std::int64_t blocks_for(std::int64_t count, std::int64_t of_block) {
  return (count + of_block - 1) / of_block;
}

template <class Real>
void launch_vectors_of(Device& device, const Problem& problem, Side which) {
  const SideProblem& side = problem.side[which];
  const std::size_t sums = block_warps * sizeof(Real);
  const std::int64_t tokens = problem.shape.batch * side.length;
  if (side.projection.x != nullptr) start_kernel(device, "project", project<Real>, {tokens}, sums, problem, which);
  const bool whole_token = side.norm.applied != 0 && side.norm.axis == QKCTS_AXIS_FULL_WIDTH;
  const Grid groups{tokens * (whole_token ? 1 : side.heads)};
  start_kernel(device, "prepare_vectors", prepare_vectors<Real>, groups, sums, problem, which);
}

template <class Real>
void launch_plain(Device& device, const Problem& problem) {
  const qkcts_shape& shape = problem.shape;
  const std::int64_t tiles = blocks_for(shape.q_heads / shape.kv_heads * shape.q_len, plain_rows);
  const Grid grid{shape.batch * shape.kv_heads * tiles, blocks_for(shape.v_head_dim, plain_columns<Real>),
                  problem.splits};
  start_kernel(device, "attend_plain", attend_plain<Real>, grid, sizeof(PlainTile<Real>), problem);
}

template <bool is_bfloat16, int parts>
void launch_tensor(Device& device, const Problem& problem) {
  const qkcts_shape& shape = problem.shape;
  const std::int64_t tiles = blocks_for(shape.q_heads / shape.kv_heads * shape.q_len, tensor_rows);
  const Grid grid{shape.batch * shape.kv_heads * tiles, 1, problem.splits};
  const std::int64_t columns = problem.side[value_side].padded;
  const auto bytes = static_cast<std::size_t>(tensor_tile_bytes(parts, problem.side[query_side].padded, columns));
  if (columns <= 64) {
    start_kernel(device, "attend_tensor", attend_tensor<is_bfloat16, parts, 8>, grid, bytes, problem);
  } else {
    start_kernel(device, "attend_tensor", attend_tensor<is_bfloat16, parts, 16>, grid, bytes, problem);
  }
}

template <class Real>
void launch_rows_of(Device& device, const Problem& problem) {
  const Grid rows{rows_of(problem)};
  start_kernel(device, "finish_rows", finish_rows<Real>, rows, 0, problem);
  if (problem.probs == nullptr && problem.weights == nullptr) return;
  start_kernel(device, "weigh_rows", weigh_rows<Real>, rows, 0, problem);
  if (problem.weights != nullptr && problem.output != nullptr)
    start_kernel(device, "sum_weighted", sum_weighted<Real>, rows, 0, problem);
}

}  // namespace

void load_kernels() {
  load_kernel("finish_rows", finish_rows<float>);
}

void launch_vectors(Device& device, const Problem& problem, Side which) {
  if (problem.storage == QKCTS_BINARY64) {
    launch_vectors_of<double>(device, problem, which);
  } else {
    launch_vectors_of<float>(device, problem, which);
  }
}

void launch_operands(Device& device, const Problem& problem, Side which) {
  const SideProblem& side = problem.side[which];
  const Grid grid{blocks_for(problem.shape.batch * side.heads * side.length, block_warps)};
  start_kernel(device, "split_operands", split_operands<float>, grid, 0, problem, which);
}

void launch_attention(Device& device, const Problem& problem, bool on_unit) {
  if (!on_unit)
    return problem.storage == QKCTS_BINARY64 ? launch_plain<double>(device, problem)
                                             : launch_plain<float>(device, problem);
  const bool split = problem.side[query_side].parts == split_parts;
  if (problem.storage == QKCTS_BFLOAT16) {
    return split ? launch_tensor<true, split_parts>(device, problem) : launch_tensor<true, 1>(device, problem);
  }
  return split ? launch_tensor<false, split_parts>(device, problem) : launch_tensor<false, 1>(device, problem);
}

void launch_rows(Device& device, const Problem& problem) {
  if (problem.storage == QKCTS_BINARY64) {
    launch_rows_of<double>(device, problem);
  } else {
    launch_rows_of<float>(device, problem);
  }
}

void launch_tiles(Device& device, bool is_bfloat16, const UnitTiles& tiles, std::int64_t count) {
  const Grid grid{count / block_warps};
  if (is_bfloat16) {
    start_kernel(device, "multiply_tiles", multiply_tiles<true>, grid, 0, tiles);
  } else {
    start_kernel(device, "multiply_tiles", multiply_tiles<false>, grid, 0, tiles);
  }
}

bool fits_unit(const Problem& problem, std::int64_t shared_memory) {
  const std::int64_t lanes = problem.side[query_side].padded, columns = problem.side[value_side].padded;
  return lanes <= widest_operand && columns <= widest_operand &&
         tensor_tile_bytes(problem.side[query_side].parts, lanes, columns) <= shared_memory;
}

}  // namespace qkcts::cuda
