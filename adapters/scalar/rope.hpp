// SPDX-License-Identifier: Apache-2.0
// Clause QK-ROPE: pairs of lanes are rotated by an angle whose cosine and sine are given.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <qkcts/contract.h>

namespace qkcts::scalar {

// R, the number of rotated lanes.
std::int64_t rotated_lanes(const qkcts_rope& rope, std::int64_t head_dim);

// C and S of one position, R/2 entries each.
template <class Real>
struct Turn {
  std::vector<Real> cosine, sine;
};

// What QK-ROUND makes of a product and of a sum of two.
template <class Real>
struct TurnRounding {
  std::function<Real(Real)> product, sum;
};

// Rotates one head in place.
template <class Real>
void rotate(const qkcts_rope& rope, const qkcts_rotation& rotation, const Turn<Real>& turn,
            const TurnRounding<Real>& rounded, std::span<Real> head);

}  // namespace qkcts::scalar
