// SPDX-License-Identifier: Apache-2.0
// What a shape must be, by itself and under a contract.
#include <fmt/format.h>

#include "conformance/contract.hpp"

namespace qkcts {

std::string shape_fault(const qkcts_contract& terms, const qkcts_shape& shape) {
  constexpr std::int64_t longest = (std::int64_t{1} << 31) - 1;  // lengths and position ids are int32 elsewhere
  constexpr double most = 0x1p48;                                // elements of one tensor; far from any overflow
  const struct {
    const char* name;
    std::int64_t extent;
  } extents[] = {{"batch", shape.batch},          {"q_heads", shape.q_heads}, {"kv_heads", shape.kv_heads},
                 {"q_len", shape.q_len},          {"k_len", shape.k_len},     {"head_dim", shape.head_dim},
                 {"v_head_dim", shape.v_head_dim}};
  for (const auto& e : extents)
    if (e.extent < 1 || e.extent > longest)
      return fmt::format("shape: {} is {}, must lie in 1..{}", e.name, e.extent, longest);
  if (shape.q_heads % shape.kv_heads != 0)
    return fmt::format("shape: q_heads {} is no multiple of kv_heads {}", shape.q_heads, shape.kv_heads);
  for (const qkcts_stage stage : all_stages) {
    double elements = 1;
    for (const std::int64_t extent : stage_shape(stage, shape)) elements *= static_cast<double>(extent);
    if (elements > most) return fmt::format("shape: stage {} has {} elements, too many", stage_name(stage), elements);
  }
  if (terms.rope.order != QKCTS_ROPE_NONE) {
    if (terms.rope.rotated > shape.head_dim)
      return fmt::format("shape: head_dim {} is shorter than rope.rotated {}", shape.head_dim, terms.rope.rotated);
    if (terms.rope.rotated == 0 && shape.head_dim % 2 != 0)
      return fmt::format("shape: head_dim {} is odd, so it cannot be rotated in pairs", shape.head_dim);
    if (terms.rotation.scaling == QKCTS_SCALING_NTK && terms.rope.rotated == 0 && shape.head_dim == 2)
      return "shape: head_dim 2 is one pair: rope.scaling ntk has the exponent R / (R - 2)";
    if (terms.rotation.tables == QKCTS_TABLES_PER_HEAD && shape.q_heads != shape.kv_heads)
      return fmt::format("shape: rope.tables per_head needs q_heads {} and kv_heads {} to be equal", shape.q_heads,
                         shape.kv_heads);
  }
  return {};
}

}  // namespace qkcts
