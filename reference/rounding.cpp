// SPDX-License-Identifier: Apache-2.0
#include "reference/rounding.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace qkcts {
namespace {

bool same_bits(double x, double y) {
  return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
}

// RN((x - hi) / ulp64(hi) * 256). With p the precision of x: |x - hi| <= ulp64(hi)/2, and both are multiples of the
// smaller of their last places, so p + 64 bits hold the difference exactly (if hi = 0 the difference is x itself).
std::int16_t rest(RealView x, double hi) {
  if (!std::isfinite(hi)) return 0;
  Real difference(mpfr_get_prec(x) + 64);
  mpfr_sub_d(difference.get(), x, hi, MPFR_RNDN);
  if (mpfr_zero_p(difference.get())) return 0;
  const long ulp_exponent = std::ilogb(ulp(Format::binary64, hi));
  mpfr_mul_2si(difference.get(), difference.get(), 8 - ulp_exponent, MPFR_RNDN);
  return static_cast<std::int16_t>(mpfr_get_si(difference.get(), MPFR_RNDN));
}

}  // namespace

// The rounding of MPFR to q bits is the rounding of the format where q = p - max(0, emin - e) bits of x stand at or
// above the format's last place; that needs neither a change of MPFR's exponent range nor a second rounding.
double round_to_format(RealView x, Format format) {
  const FormatParameters& f = parameters(format);
  const double sign = mpfr_signbit(x) != 0 ? -1.0 : 1.0;
  if (mpfr_zero_p(x)) return sign * 0.0;
  if (mpfr_inf_p(x)) return sign * std::numeric_limits<double>::infinity();
  if (format == Format::binary64) return mpfr_get_d(x, MPFR_RNDN);  // MPFR's own, with gradual underflow
  const long e = mpfr_get_exp(x) - 1;                               // floor(log2 |x|)
  const long bits = f.precision - std::max<long>(0, f.emin - e);
  if (bits < 0) return sign * 0.0;  // |x| < half the smallest subnormal
  if (bits == 0) {                  // from half of it up to all of it: a tie if it is exactly half, and 0 is even
    const bool is_half = mpfr_min_prec(x) == 1;
    return sign * (is_half ? 0.0 : smallest_subnormal(format));
  }
  Real rounded(bits);
  mpfr_set(rounded.get(), x, MPFR_RNDN);
  const bool overflows =
      sign > 0 ? mpfr_cmp_d(rounded.get(), f.largest) > 0 : mpfr_cmp_d(rounded.get(), -f.largest) < 0;
  if (overflows) return sign * std::numeric_limits<double>::infinity();
  return mpfr_get_d(rounded.get(), MPFR_RNDN);  // exact
}

Proven round_exactly(RealView z, Format format) {
  Proven result;
  result.expected = encode(format, round_to_format(z, format));  // exact: the value is one of the format
  result.hi = round_to_format(z, Format::binary64);
  result.lo = rest(z, result.hi);
  return result;
}

std::optional<Proven> round_if_decided(RealView lower, RealView upper, Format format) {
  if (mpfr_nan_p(lower) || mpfr_nan_p(upper)) return std::nullopt;
  const Proven low = round_exactly(lower, format);
  if (mpfr_equal_p(lower, upper)) return low;
  const Proven high = round_exactly(upper, format);
  if (low.expected != high.expected || !same_bits(low.hi, high.hi) || low.lo != high.lo) return std::nullopt;
  return low;
}

std::optional<double> approximate_if_narrow(RealView lower, RealView upper) {
  if (mpfr_nan_p(lower) || mpfr_nan_p(upper)) return std::nullopt;
  const double low = mpfr_get_d(lower, MPFR_RNDN);
  if (mpfr_equal_p(lower, upper) != 0) return low;  // MPFI's [0, 0] has ends of opposite signs
  const double high = mpfr_get_d(upper, MPFR_RNDN);
  if (same_bits(low, high)) return low;
  if (low == 0.0 && high == 0.0) return std::nullopt;  // the sign is not known: perhaps an exact zero
  // One quantum apart, or two where a power of two lies between: within 2^-52 relative of each other.
  const bool narrow = std::isfinite(low) && std::isfinite(high) && std::signbit(low) == std::signbit(high) &&
                      (std::nextafter(low, high) == high) && std::min(std::fabs(low), std::fabs(high)) >= 0x1p-1022;
  if (narrow) return low;
  return std::nullopt;
}

// Roundings change at midpoints of the formats (multiples of ulp64/2, since every format's grid holds that of binary64)
// and at odd multiples of ulp64(hi)/512. Where z lies just below a power of two its ulp64 is half as large; taking the
// end of smaller magnitude and one bit more covers that: 2^grid = ulp64 / 2^10.
std::optional<Boundary> only_boundary(RealView lower, RealView upper) {
  if (!mpfr_number_p(lower) || !mpfr_number_p(upper)) return std::nullopt;
  if (mpfr_sgn(lower) <= 0 && mpfr_sgn(upper) >= 0) return Boundary{Real(53, 0.0), -1090};
  const RealView smaller = mpfr_sgn(lower) > 0 ? lower : upper;
  const long grid = std::max<long>(mpfr_get_exp(smaller) - 1, -1022) - 52 - 10;
  Boundary boundary{Real(mpfr_get_prec(lower) + 64), grid};
  mpfr_mul_2si(boundary.value.get(), lower, -grid, MPFR_RNDN);  // exact
  mpfr_ceil(boundary.value.get(), boundary.value.get());
  mpfr_mul_2si(boundary.value.get(), boundary.value.get(), grid, MPFR_RNDN);
  if (mpfr_greater_p(boundary.value.get(), upper)) return std::nullopt;
  Real next(mpfr_get_prec(lower) + 64);
  mpfr_set_ui_2exp(next.get(), 1, grid, MPFR_RNDN);
  mpfr_add(next.get(), next.get(), boundary.value.get(), MPFR_RNDN);
  if (mpfr_lessequal_p(next.get(), upper)) return std::nullopt;
  return boundary;
}

bool is_negligible(RealView x) {
  return mpfr_zero_p(x) != 0 || mpfr_get_exp(x) < -1084;
}

Real beside(const Boundary& boundary, int direction) {
  Real result(mpfr_get_prec(boundary.value.get()) + 64);
  mpfr_set_si_2exp(result.get(), direction < 0 ? -1 : 1, boundary.grid - 2, MPFR_RNDN);
  mpfr_add(result.get(), result.get(), boundary.value.get(), MPFR_RNDN);
  return result;
}

}  // namespace qkcts
