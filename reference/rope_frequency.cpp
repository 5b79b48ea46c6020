// SPDX-License-Identifier: Apache-2.0
#include "reference/rope_frequency.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "conformance/contract.hpp"

namespace qkcts {

// L0 / (2 pi turns) is no algebraic number, and theta^(2n/R) is one for every whole n; so an end of the ramp is never a
// whole number itself, and some precision tells on which side of one it lies.
template <std::size_t L>
double RopeFrequencies::whole_end(double turns, bool up) const {
  const Enclosure<level_digits[L]> end = index_of_turns<level_digits[L]>(turns);
  Real low(64), high(64);
  (up ? mpfr_ceil : mpfr_floor)(low.get(), lower(end));
  (up ? mpfr_ceil : mpfr_floor)(high.get(), upper(end));
  if (mpfr_equal_p(low.get(), high.get())) return mpfr_get_d(low.get(), MPFR_RNDN);
  if constexpr (L + 1 < level_count) {
    return whole_end<L + 1>(turns, up);
  } else {
    throw InputError(
        fmt::format("rope.scaling yarn: the end of the ramp of {} turns over {} positions is too near to a whole pair "
                    "to be rounded; change rope.original_length",
                    turns, rotation_.original_length));
  }
}

RopeFrequencies::RopeFrequencies(const qkcts_rope& rope, const qkcts_rotation& rotation, std::int64_t head_dim)
    : rope_(rope), rotation_(rotation), rotated_(rotated_lanes(rope, head_dim)), turning_(pairs()) {
  prepare_thread();
  if (rotation.scaling == QKCTS_SCALING_PROPORTIONAL) {
    Rational share(rotation.factor);
    share *= Rational(pairs());
    turning_ = std::min(pairs(), static_cast<std::int64_t>(numerator(share) / denominator(share)));
  }
  if (rotation.scaling == QKCTS_SCALING_YARN && rotation.untruncated == 0) {
    WholeEnds ends;
    ends.first = std::max(whole_end<0>(rotation.high, false), 0.0);
    ends.last = std::min(whole_end<0>(rotation.low, true), static_cast<double>(rotated_ - 1));
    // A step at a: between whole indices it does not matter how steep.
    if (ends.first == ends.last) ends.last += 0.001;
    ends_ = ends;
  }
}

}  // namespace qkcts
