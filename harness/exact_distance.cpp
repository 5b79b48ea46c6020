// SPDX-License-Identifier: Apache-2.0
#include "harness/exact_distance.hpp"

#include <array>
#include <cmath>
#include <cstddef>

#include "conformance/format.hpp"

#ifdef __FAST_MATH__
#error "the judge must not be compiled with fast-math: NaN and TwoSum would lose their meaning"
#endif

namespace qkcts {
namespace {

// Terms whose exact sum is wanted, as a nonoverlapping expansion of increasing magnitude (Shewchuk 1997,
// grow-expansion). Every step is TwoSum, which is exact in binary64 for any operands, subnormal ones too, unless the
// sum overflows.
class Expansion {
 public:
  void add(double term) {
    double carry = term;
    for (std::size_t i = 0; i < size_; ++i) {
      const double sum = carry + parts_[i];
      const double part = sum - carry;
      const double error = (carry - (sum - part)) + (parts_[i] - part);
      parts_[i] = error;
      carry = sum;
    }
    parts_[size_++] = carry;
  }
  // The largest non-zero part decides, since the others together are smaller than it.
  int sign() const {
    for (std::size_t i = size_; i-- > 0;) {
      if (parts_[i] != 0) return parts_[i] > 0 ? 1 : -1;
    }
    return 0;
  }
  double value() const {
    double sum = 0;
    for (std::size_t i = 0; i < size_; ++i) sum += parts_[i];
    return sum;
  }

 private:
  std::array<double, 6> parts_{};
  std::size_t size_ = 0;
};

// lo/256 * ulp64(hi) has bits down to 2^-1082, so everything is multiplied by a power of two first: up by 2^128 below
// 2^800. From there on ulp64/256 > 2^700 has bits to spare and 2^-128 keeps sums from overflowing; bits that a tiny
// `got` loses by it cannot decide, as delta < 2^128.
int scale_for(double magnitude) {
  return magnitude < 0x1p800 ? 128 : -128;
}

double low_part(StoredValue z, int scale) {
  return static_cast<double>(z.lo) * (std::ldexp(ulp(Format::binary64, z.hi), scale) * 0x1p-8);
}

}  // namespace

double Distance::in_units_of(double unit) const {
  // The quotient is formed at the scale of the error; a unit that overflows there makes it 0, one that underflows is
  // exact.
  return std::fabs(scaled) / std::ldexp(unit, scale);
}

Distance distance(double got, StoredValue z, double delta) {
  Distance result;
  result.scale = scale_for(std::fmax(std::fabs(got), std::fabs(z.hi)));
  const auto scaled = [&](double x) { return std::ldexp(x, result.scale); };
  Expansion difference;
  difference.add(scaled(got));
  difference.add(-scaled(z.hi));
  difference.add(-low_part(z, result.scale));
  Expansion above = difference;  // (got - z) - delta <= 0
  above.add(-scaled(delta));
  Expansion below = difference;  // (got - z) + delta >= 0
  below.add(scaled(delta));
  result.within = above.sign() <= 0 && below.sign() >= 0;
  result.scaled = difference.value();
  result.error = std::ldexp(result.scaled, -result.scale);
  return result;
}

bool reaches(double direction, StoredValue z, double delta, double threshold, double threshold_low) {
  const int scale = scale_for(std::fmax(std::fabs(z.hi), threshold));
  Expansion sum;
  sum.add(direction * std::ldexp(z.hi, scale));
  sum.add(direction * low_part(z, scale));
  sum.add(std::ldexp(delta, scale));
  sum.add(-std::ldexp(threshold, scale));
  sum.add(-std::ldexp(threshold_low, scale));
  return sum.sign() >= 0;
}

}  // namespace qkcts
