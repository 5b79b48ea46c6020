// SPDX-License-Identifier: Apache-2.0
// From z in [h + l - error, h + l + error] to what a corpus stores, where all of these numbers round alike.
//
// E = exponent of h; q = 256 l / ulp64(h) = l 2^(60 - E) is exact. With eps >= error in the same unit plus the
// roundings of q - eps and q + eps (2^-51 |q| and a factor 1 + 2^-20):
//   hi: RN64(z) = h for all of them if |q| + eps < 128, and < 64 where h is a power of two, below which the numbers
//       stand twice as close. If error = 0, z = h + l and h = RN64(h + l) anyway.
//   lo: RN(q - eps) = RN(q + eps), ties to even as everywhere; adding 1.5 * 2^52 rounds to an integer.
//   expected: a narrower format's midpoints are binary64 numbers, and RN64 is monotone. So z and h lie on the same side
//       of every midpoint but h itself: RN(z) = RN(h) unless h is a midpoint; then the sign of z - h decides.
#if defined(QKCTS_DOUBLE_WORD_ROUNDING) == defined(HWY_TARGET_TOGGLE)
#ifdef QKCTS_DOUBLE_WORD_ROUNDING
#undef QKCTS_DOUBLE_WORD_ROUNDING
#else
#define QKCTS_DOUBLE_WORD_ROUNDING
#endif

#include <bit>
#include <cstring>

#include "reference/double_word.hpp"
#include "reference/double_word_kernels.hpp"
#include "reference/double_word_midpoint.hpp"

HWY_BEFORE_NAMESPACE();
namespace qkcts::HWY_NAMESPACE {

// The narrow formats in integers: |h| as a pattern is rounded by adding half of the dropped part, less one if even.
struct NarrowFormat {
  explicit NarrowFormat(Format format)
      : dropped(53 - parameters(format).precision),
        sign_shift(64 - parameters(format).bits),
        rebias(static_cast<std::uint64_t>(1023 - parameters(format).emax) << (parameters(format).precision - 1)),
        smallest(power(parameters(format).emin)),
        beyond(power(parameters(format).emax)) {}
  static double power(int exponent) {  // of two, a normal number
    return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52);
  }
  int dropped, sign_shift;
  std::uint64_t rebias;
  double smallest, beyond;  // magnitudes in [smallest, beyond) are rounded here
};

struct RoundedLanes {
  Bits expected;
  Lanes rest;       // 1.5 * 2^52 + lo
  Mask is_decided;  // hi, and lo where the row is stored
  Mask is_simple;   // expected is right
};

HWY_INLINE Bits magnitude_bits(Lanes h) {
  return hn::BitCast(BitsTag(), magnitude(h));
}

template <bool is_stored>
HWY_INLINE RoundedLanes round_lanes(Lanes h, Lanes l, Lanes error, const NarrowFormat* narrow) {
  const BitsTag bits;
  const Tag d;
  const Lanes size = magnitude(h);
  const Mask is_safe = hn::And(hn::Ge(size, all(0x1p-900)), hn::Le(size, all(0x1p900)));
  const Bits pattern = magnitude_bits(h);
  const Bits exponent = hn::And(pattern, hn::Set(bits, 0x7ff0000000000000));
  const Lanes unit = hn::BitCast(d, hn::Set(bits, std::uint64_t{2 * 1023 + 60} << 52) - exponent);
  const Lanes q = l * unit;
  const Mask is_exact = hn::Eq(error, all(0.0));
  const Lanes rounding = hn::IfThenElse(is_exact, all(0.0), magnitude(q) * all(0x1p-51));
  const Lanes eps = fused(error, unit * all(1 + 0x1p-20), rounding);
  const Mask is_power = hn::RebindMask(d, hn::Eq(pattern, exponent));
  const Lanes limit = hn::IfThenElse(is_power, all(64.0), all(128.0));
  RoundedLanes result;
  result.is_decided = hn::And(is_safe, hn::Or(is_exact, hn::Lt(magnitude(q) + eps, limit)));
  result.rest = all(0.0);
  result.expected = pattern;
  result.is_simple = result.is_decided;
  if constexpr (!is_stored) return result;
  const Lanes shifter = all(0x1.8p52);
  result.rest = (q - eps) + shifter;
  result.is_decided = hn::And(result.is_decided, hn::Eq(result.rest, (q + eps) + shifter));
  const Bits sign = hn::And(hn::BitCast(bits, h), hn::Set(bits, std::uint64_t{1} << 63));
  if (narrow == nullptr) {
    result.expected = hn::Or(pattern, sign);
    return result;
  }
  const Bits one = hn::Set(bits, 1);
  const Bits half = hn::Set(bits, std::uint64_t{1} << (narrow->dropped - 1));
  const Bits dropped = hn::And(pattern, hn::Set(bits, (std::uint64_t{1} << narrow->dropped) - 1));
  const Bits odd = hn::And(hn::ShiftRightSame(pattern, narrow->dropped), one);
  const Bits rounded = hn::ShiftRightSame(pattern + (half - one) + odd, narrow->dropped);
  result.expected = hn::Or(rounded - hn::Set(bits, narrow->rebias), hn::ShiftRightSame(sign, narrow->sign_shift));
  const Mask is_ordinary = hn::And(hn::Ge(size, all(narrow->smallest)), hn::Lt(size, all(narrow->beyond)));
  result.is_simple = hn::AndNot(hn::RebindMask(d, hn::Eq(dropped, half)), is_ordinary);
  return result;
}

HWY_INLINE void mask_bytes(Mask mask, std::uint8_t* bytes) {
  HWY_ALIGN std::uint8_t bits[8] = {};
  hn::StoreMaskBits(Tag(), mask, bits);
  for (std::size_t i = 0; i < lane_count; ++i) bytes[i] = static_cast<std::uint8_t>((bits[0] >> i) & 1);
}

template <bool is_stored>
HWY_INLINE void store_rounded(const RoundedLanes& rounded, Lanes h, const RoundedRow& row, std::size_t at) {
  store(row.exact + at, h);
  if constexpr (!is_stored) return;
  const hn::Rebind<std::int32_t, Tag> words;
  const hn::Rebind<std::int16_t, Tag> halves;
  hn::StoreU(rounded.expected, BitsTag(), row.expected + at);
  store(row.hi + at, h);
  const Lanes low = rounded.rest - all(0x1.8p52);  // NaN where nothing is known: no integer, and never read
  const Lanes known = hn::IfThenElseZero(hn::Eq(low, low), low);
  hn::StoreU(hn::DemoteTo(halves, hn::DemoteTo(words, known)), halves, row.lo + at);
}

template <bool is_stored>
HWY_INLINE std::size_t round_row_of(ConstWords z, const double* error, std::size_t n, Format format,
                                    const RoundedRow& row, std::uint8_t* undecided) {
  const NarrowFormat narrow(format);
  const NarrowFormat* const chosen = format == Format::binary64 ? nullptr : &narrow;
  std::memset(undecided, 0, n);
  std::size_t open = 0;
  for (std::size_t start = 0; start < n; start += lane_count) {
    const std::size_t count = n - start < lane_count ? n - start : lane_count;
    const Lanes h = load(z.h + start);
    const RoundedLanes rounded = round_lanes<is_stored>(h, load(z.l + start), load(error + start), chosen);
    if (count == lane_count) {
      store_rounded<is_stored>(rounded, h, row, start);
    } else {  // what follows the row belongs to another one
      double exact[lane_count], hi[lane_count];
      std::uint64_t expected[lane_count];
      std::int16_t lo[lane_count];
      store_rounded<is_stored>(rounded, h, {exact, expected, hi, lo}, 0);
      for (std::size_t i = 0; i < count; ++i) row.exact[start + i] = exact[i];
      for (std::size_t i = 0; i < count && is_stored; ++i) row.expected[start + i] = expected[i];
      for (std::size_t i = 0; i < count && is_stored; ++i) row.hi[start + i] = hi[i];
      for (std::size_t i = 0; i < count && is_stored; ++i) row.lo[start + i] = lo[i];
    }
    if (hn::AllTrue(Tag(), hn::And(rounded.is_decided, rounded.is_simple))) continue;
    std::uint8_t is_decided[lane_count], is_simple[lane_count];
    mask_bytes(rounded.is_decided, is_decided);
    mask_bytes(rounded.is_simple, is_simple);
    for (std::size_t i = 0; i < count; ++i) {
      bool decided = is_decided[i] != 0;
      if (is_stored && decided && is_simple[i] == 0)
        decided = encode_near(format, {z.h[start + i], z.l[start + i]}, error[start + i], row.expected[start + i]);
      undecided[start + i] = decided ? 0 : 1;
      open += decided ? 0u : 1u;
    }
  }
  return open;
}

}  // namespace qkcts::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
