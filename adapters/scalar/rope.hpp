// SPDX-License-Identifier: Apache-2.0
// Clause QK-ROPE: pairs of lanes are rotated by the angle whose cosine and sine the tables hold.
#pragma once

#include <cstdint>
#include <span>

#include <qkcts/contract.h>

namespace qkcts::scalar {

// R, the number of rotated lanes.
std::int64_t rotated_lanes(const qkcts_rope& rope, std::int64_t head_dim);

// Rotates one head in place; `cosine` and `sine` are the table row of the token's position, R/2 entries each.
template <class Real>
void rotate(const qkcts_rope& rope, std::span<const Real> cosine, std::span<const Real> sine, std::span<Real> head);

}  // namespace qkcts::scalar
