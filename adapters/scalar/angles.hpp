// SPDX-License-Identifier: Apache-2.0
// Clause QK-ROPE-10: the frequencies of the rotated pairs, for contracts whose angles the runtime computes itself.
#pragma once

#include <cstdint>
#include <vector>

#include <qkcts/contract.h>

namespace qkcts::scalar {

// Frequency of pair i, 0 <= i < rotated / 2, in binary64 whatever the format of the case is: the angle is
// position * frequency, and an error of the frequency grows with the position.
std::vector<double> frequencies(const qkcts_rope& rope, const qkcts_rotation& rotation, std::int64_t rotated);

}  // namespace qkcts::scalar
