// SPDX-License-Identifier: Apache-2.0
// A part of a case as a case of its own: some batch entries, heads, tokens and lanes of it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "conformance/case.hpp"

namespace qkcts {

// Indices that stay, ascending, none of the lists empty.
struct Slice {
  std::vector<std::int64_t> batch, kv_heads, group, q_len, k_len, head_dim, v_head_dim;  // group: 0 ... G-1
};

// All of the case.
Slice whole_slice(const qkcts_shape& shape);

// Key lengths and prefixes are shortened with the keys. What it means is up to the contract: positions that count from
// the last key move with it. Nothing where the result contradicts the contract.
std::optional<Case> sliced(const Case& c, const Slice& slice);

}  // namespace qkcts
