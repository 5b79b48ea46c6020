// SPDX-License-Identifier: Apache-2.0
#include "harness/quick_distance.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "conformance/lanes.hpp"

#ifdef __FAST_MATH__
#error "the judge must not be compiled with fast-math: NaN and TwoSum would lose their meaning"
#endif

namespace qkcts {
namespace {

constexpr std::uint64_t exponent_bits = 0x7FF0000000000000u;

// 2^floor(log2 |x|) of a normal number.
double leading_power(double x) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & exponent_bits);
}

// 1/x of a power of two between 2^-1021 and 2^1021: the biased exponents of the two add up to 2046.
double inverse_power(double x) {
  return std::bit_cast<double>((std::uint64_t{2046} << 52) - std::bit_cast<std::uint64_t>(x));
}

// Let d = got - hi and w = lo/256 * ulp64(hi), so that the exact distance is d - w.
// (1) TwoSum gives d = sum + error exactly; only error = 0 is settled here.
// (2) w = lo * 2^(e-60), e = floor(log2 |hi|), is exact: |lo| < 2^15, and |hi| >= 2^-800 keeps it normal.
// (3) t = fl(sum - w) differs from d - w by at most 2^-53 |t|. If |t| <= (1 - 2^-50) delta, then |d - w| <= delta.
// (4) distance() sums the parts of the same expansion, whose largest one is t and whose others are its rounding error
//     and 0: fl(error of t + t) = t. Its scaling by 2^128 changes no quotient, since nothing here comes near the ends
//     of the range. So the figures are |t| / delta and |t| / ulp(hi), the latter by an exact power of two.
// Comparisons with NaN are false, and an infinite got has an infinite t: neither is settled.
[[gnu::always_inline]] inline void measure_all(double smallest_normal, double unit, std::size_t count,
                                               const double* __restrict got, const double* __restrict hi,
                                               const std::int16_t* __restrict lo, const float* __restrict delta,
                                               std::uint8_t* __restrict settled, double* __restrict ulps,
                                               double* __restrict ratio, double* __restrict signed_ulps,
                                               double* __restrict outward_ulps) {
  constexpr double least = 0x1p-800, most = 0x1p1000, largest_delta = std::numeric_limits<float>::max();
  for (std::size_t i = 0; i < count; ++i) {
    const double g = got[i], h = hi[i], bound = static_cast<double>(delta[i]);
    const double sum = g - h;
    const double part = sum - g;
    const double error = (g - (sum - part)) + (-h - part);
    const double power = leading_power(h);
    const double t = sum - static_cast<double>(lo[i]) * (power * 0x1p-60);
    const double off = std::fabs(t), size = std::fabs(h);
    const double in_ulps = off * inverse_power((power < smallest_normal ? smallest_normal : power) * unit);
    ulps[i] = in_ulps;
    ratio[i] = off / bound;
    signed_ulps[i] = g < h ? -in_ulps : in_ulps;
    outward_ulps[i] = std::fabs(g) < size ? -in_ulps : in_ulps;
    settled[i] = static_cast<std::uint8_t>((error == 0) & (off <= bound * (1 - 0x1p-50)) & (bound > 0) &
                                           (bound <= largest_delta) & (size >= least) & (size <= most));
  }
}

}  // namespace

void measure_quickly(Format format, std::size_t count, const double* got, const double* hi, const std::int16_t* lo,
                     const float* delta, QuickDistances& distances) {
  const FormatParameters& f = parameters(format);
  const double smallest_normal = std::ldexp(1, f.emin), unit = std::ldexp(1, 1 - f.precision);
  in_widest_lanes([=, d = &distances]() QKCTS_STRAIGHT {
    measure_all(smallest_normal, unit, count, got, hi, lo, delta, d->settled.data(), d->ulps.data(), d->ratio.data(),
                d->signed_ulps.data(), d->outward_ulps.data());
  });
}

}  // namespace qkcts
