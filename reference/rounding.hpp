// SPDX-License-Identifier: Apache-2.0
// From an enclosure to bits: only if both ends say the same.
#pragma once

#include <cstdint>
#include <optional>

#include "conformance/format.hpp"
#include "reference/real.hpp"

namespace qkcts {

// x rounded to `format` (roundTiesToEven, one rounding, gradual underflow); the result is a value of the format, exact
// in binary64, or infinite where x overflows (in e4m3fn too, which has no infinity). x may be infinite, not NaN.
double round_to_format(RealView x, Format format);

// What a corpus stores of a real number z.
struct Proven {
  std::uint64_t expected = 0;  // bits of z in the stage's format
  double hi = 0;               // RN64(z)
  std::int16_t lo = 0;         // RN((z - hi) / ulp64(hi) * 256); 0 if hi is infinite
};

Proven round_exactly(RealView z, Format format);

// The common Proven of all z in [lower, upper], or nothing if the ends disagree. Rounding is monotone, so agreement of
// the ends is agreement of everything between.
std::optional<Proven> round_if_decided(RealView lower, RealView upper, Format format);

// A binary64 number within 2^-50 |z| of every z in [lower, upper] (within 2^-1075 where z is subnormal), or nothing if
// the enclosure is too wide for that.
std::optional<double> approximate_if_narrow(RealView lower, RealView upper);

// The one number in [lower, upper] where some rounding of round_exactly() may change, on an exact grid: `value` is a
// multiple of 2^grid, and no rounding changes strictly between neighbouring multiples.
struct Boundary {
  Real value;
  long grid = 0;
};

// Nothing if the enclosure holds several grid points or none. An enclosure of 0 gives 0, with a grid that holds only
// where the enclosure is negligible.
std::optional<Boundary> only_boundary(RealView lower, RealView upper);

// |x| < 2^-1084, so that everything in round_exactly() is 0 with the sign of x: lo counts units of 2^-1082.
bool is_negligible(RealView x);

// A number just beside the boundary, on the side of the sign of `direction`: it rounds as everything up to the next
// multiple of the grid does.
Real beside(const Boundary& boundary, int direction);

}  // namespace qkcts
