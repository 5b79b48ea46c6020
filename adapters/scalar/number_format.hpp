// SPDX-License-Identifier: Apache-2.0
// binary16 and bfloat16 as bits: exact widening to binary32, roundTiesToEven narrowing from it.
#pragma once

#include <cstdint>

namespace qkcts::scalar {

// Exact for every pattern; a NaN stays a NaN.
float from_binary16(std::uint16_t bits);
float from_bfloat16(std::uint16_t bits);

// One correct rounding, to even on ties; infinity from largest + half an ulp on; subnormal results included.
std::uint16_t to_binary16(float value);
std::uint16_t to_bfloat16(float value);

}  // namespace qkcts::scalar
