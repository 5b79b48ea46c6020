// SPDX-License-Identifier: Apache-2.0
// The number formats: parameters, exact decoding, correct encoding, and the one definition of ulp.
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
  e4m3fn = QKCTS_E4M3FN,
  e5m2 = QKCTS_E5M2,
};

// IEEE 754-2019 parameters: p = precision (significand bits), emin and emax of normal numbers.
struct FormatParameters {
  std::string_view name;
  int bits;
  int precision;
  int emin;
  int emax;
  double largest;     // largest finite value
  bool has_infinity;  // false: the pattern above the largest number is the only NaN of its sign, and there is no
                      // infinity
};

const FormatParameters& parameters(Format format);
std::optional<Format> format_named(std::string_view name);

// May the tensors of a case stand in it? The 8-bit formats stand at rounding points only.
bool stores_tensors(Format format);
std::optional<Format> storage_format_named(std::string_view name);

double unit_roundoff(Format format);       // 2^-p
double smallest_normal(Format format);     // 2^emin
double smallest_subnormal(Format format);  // 2^(emin - p + 1)

// The exact value of a bit pattern (the low `bits` bits). NaN for any NaN.
double decode(Format format, std::uint64_t pattern);

// What becomes of a value beyond the largest finite number, infinities included.
enum class Overflow : std::uint8_t {
  to_infinity,  // or to NaN, in a format without infinity; either keeps the sign
  saturate,     // the largest finite number with the sign of the value
};

// roundTiesToEven of a binary64 value, in one rounding. A value overflows if its rounding, were the exponent unbounded,
// would exceed the largest number: beyond largest + half an ulp, and at that point itself where the significand of the
// largest is odd. Of e4m3fn it is even, so 464 becomes 448. NaN stays NaN.
std::uint64_t encode(Format format, double value, Overflow overflow = Overflow::to_infinity);
bool overflows(Format format, double value);  // value is no NaN

// ulp(z) = 2^(max(floor(log2 |z|), emin) - p + 1); z finite. ulp(0) is the smallest subnormal.
double ulp(Format format, double z);

// The format of scores, capped, masked and lse: binary64 for binary64, else binary32.
Format accumulator_format(Format storage);

// The format in which `stage` is observed in a case stored in `storage`.
Format stage_format(qkcts_stage stage, Format storage);

}  // namespace qkcts
