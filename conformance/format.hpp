// SPDX-License-Identifier: Apache-2.0
// The storage formats: parameters, exact decoding, correct encoding, and the one definition of ulp.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <qkcts/contract.h>

namespace qkcts {

enum class Format : std::uint32_t {
  binary64 = QKCTS_BINARY64,
  binary32 = QKCTS_BINARY32,
  binary16 = QKCTS_BINARY16,
  bfloat16 = QKCTS_BFLOAT16,
};

// IEEE 754-2019 parameters: p = precision (significand bits), emin and emax of normal numbers.
struct FormatParameters {
  std::string_view name;
  int bits;
  int precision;
  int emin;
  int emax;
  double largest;  // largest finite value
};

const FormatParameters& parameters(Format format);
std::optional<Format> format_named(std::string_view name);

double unit_roundoff(Format format);       // 2^-p
double smallest_normal(Format format);     // 2^emin
double smallest_subnormal(Format format);  // 2^(emin - p + 1)

// The exact value of a bit pattern (the low `bits` bits). NaN for any NaN.
double decode(Format format, std::uint64_t pattern);

// roundTiesToEven of a binary64 value, in one rounding; overflow to infinity from largest + half an ulp on.
std::uint64_t encode(Format format, double value);

// ulp(z) = 2^(max(floor(log2 |z|), emin) - p + 1); z finite. ulp(0) is the smallest subnormal.
double ulp(Format format, double z);

// The format of scores, capped, masked and lse: binary64 for binary64, else binary32.
Format accumulator_format(Format storage);

// The format in which `stage` is observed in a case stored in `storage`.
Format stage_format(qkcts_stage stage, Format storage);

}  // namespace qkcts
