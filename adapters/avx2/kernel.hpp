// SPDX-License-Identifier: Apache-2.0
// Tiled attention with an online softmax: blocks of 64 keys, up to 48 query rows that share a key head at a time.
#pragma once

#include "adapters/avx2/plan.hpp"

namespace qkcts::avx2 {

// Writes every observed stage of the call that `plan` describes. Observation changes no bit of any stage: hidden keys
// that are visited only because somebody looks at their scores add p = 0 and leave sums, maxima and outputs as they
// are.
void attend(const Plan& plan);

}  // namespace qkcts::avx2
