// SPDX-License-Identifier: Apache-2.0
// Numbers that are few and cheap on the host: what multiplies the scores, and the angles of contracts without tables.
// Formed in binary64 and rounded once.
#pragma once

#include <cstdint>
#include <vector>

#include <qkcts/contract.h>

namespace qkcts::cuda {

// QK-SCALE and QK-QTEMP: scale * factor / temperature of every row [B, Hq, Lq]. `learned`: entries of the input
// `scale`, `positions`: of the queries [B, Lq]; either is empty where the contract does not ask for it.
std::vector<double> row_scales(const qkcts_contract& terms, const qkcts_shape& shape,
                               const std::vector<double>& learned, const std::vector<std::int32_t>& positions);

// QK-ROPE-10: frequencies of the pairs.
std::vector<double> pair_frequencies(const qkcts_rope& rope, const qkcts_rotation& rotation, std::int64_t rotated);

}  // namespace qkcts::cuda
