// SPDX-License-Identifier: Apache-2.0
// From raw dot products to what the softmax sees: scale, bias, soft-cap and mask of one row and up to 64 keys.
// Only for translation units built with AVX2 and FMA.
#pragma once

#include <cstdint>

#include "adapters/avx2/plan.hpp"

namespace qkcts::avx2 {

struct LogitRow {
  std::int64_t b = 0, h = 0, t = 0;
  float tau = 1;
  KeyInterval keys;
  bool any_visible = false;  // set by finish_logits
};

// s[0 .. 8 * registers) holds the dot products of the keys from `first` on; they become logits, -inf at hidden keys and
// at keys from Lk on. Writes the stages scores and capped where they are observed. Returns the largest logit.
float finish_logits(const Plan& plan, LogitRow& row, std::int64_t first, std::int64_t registers, float* s);

}  // namespace qkcts::avx2
