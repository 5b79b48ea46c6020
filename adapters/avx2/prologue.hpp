// SPDX-License-Identifier: Apache-2.0
// Load, norm, gain, bias and rotation in one pass over q and k, straight into the layouts of the score tiles.
#pragma once

#include <cstdint>

#include "adapters/avx2/aligned_floats.hpp"
#include "adapters/avx2/plan.hpp"

namespace qkcts::avx2 {

// Rows [B, Hq, Lq, dim_stride]; lanes from D on are 0. The query heads that read one key head are neighbours: slot().
AlignedFloats pack_queries(const Plan& plan);

// Panels [B, Hkv, ceil(Lk/16), dim_stride, 16]: lane d of 16 keys side by side; keys from Lk on are 0.
AlignedFloats pack_keys(const Plan& plan);
std::int64_t panel_count(const Plan& plan);

// Rows [B, Hkv, Lk, value_stride] of v after its norm; empty where v stays as it is.
AlignedFloats pack_values(const Plan& plan);

}  // namespace qkcts::avx2
