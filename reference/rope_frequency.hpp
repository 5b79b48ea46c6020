// SPDX-License-Identifier: Apache-2.0
// The frequencies of a rotary embedding (QK-ROPE-10), as enclosures of any precision.
//
// f_i = theta^(-2i/R). A scaling is one of: another theta, a share e_i of f_i beside a share 1 - e_i of f_i / s, or
// zero for the later pairs. Every case distinction but two is a clamp of e_i to [0, 1], which enclosures carry through:
// under llama3, "f_i if lambda < L0/high" says m > 1, and "f_i / s if lambda > L0/low" says m < 0. The two: the number
// of turning pairs under `proportional` (rational), and the rounding of yarn's ends to whole numbers (decided once,
// when the object is made).
#pragma once

#include <cstdint>
#include <optional>

#include <qkcts/contract.h>

#include "reference/real.hpp"

namespace qkcts {

// R.
inline std::int64_t rotated_lanes(const qkcts_rope& rope, std::int64_t head_dim) {
  return rope.rotated == 0 ? head_dim : static_cast<std::int64_t>(rope.rotated);
}

class RopeFrequencies {
 public:
  // Throws InputError if an end of yarn's ramp comes too near to a whole number to be rounded.
  RopeFrequencies(const qkcts_rope& rope, const qkcts_rotation& rotation, std::int64_t head_dim);

  std::int64_t pairs() const { return rotated_ / 2; }
  // Pair i stays as it is (up to the attention factor).
  bool is_zero(std::int64_t i) const { return i >= turning_; }
  double attention_factor() const { return rotation_.attention_factor == 0 ? 1.0 : rotation_.attention_factor; }

  // i < pairs(). Exact where it is 0, and 1 for i = 0 without a scaling that changes it.
  template <unsigned Digits>
  Enclosure<Digits> frequency(std::int64_t i) const;

 private:
  struct WholeEnds {
    double first = 0, last = 0;  // a and b of yarn, after their rounding and clamping
  };

  // R ln(L0 / (2 pi turns)) / (2 ln theta): the index of the pair that turns so often over L0 positions.
  template <unsigned Digits>
  Enclosure<Digits> index_of_turns(double turns) const;
  // e_i, the share of the unscaled frequency.
  template <unsigned Digits>
  Enclosure<Digits> share(std::int64_t i, const Enclosure<Digits>& unscaled) const;
  template <std::size_t L>
  double whole_end(double turns, bool up) const;

  qkcts_rope rope_;
  qkcts_rotation rotation_;
  std::int64_t rotated_ = 0;
  std::int64_t turning_ = 0;
  std::optional<WholeEnds> ends_;  // of yarn, unless untruncated
};

template <unsigned Digits>
Enclosure<Digits> RopeFrequencies::index_of_turns(double turns) const {
  using Number = Enclosure<Digits>;
  const Number quotient = Number(rotation_.original_length) / (two_pi<Digits>() * Number(turns));
  return log_of(quotient) * Number(static_cast<double>(rotated_)) / (log_of(Number(rope_.theta)) * 2ul);
}

template <unsigned Digits>
Enclosure<Digits> RopeFrequencies::share(std::int64_t i, const Enclosure<Digits>& unscaled) const {
  using Number = Enclosure<Digits>;
  Number e;
  if (rotation_.scaling == QKCTS_SCALING_LLAMA3) {  // m = (L0 / lambda - low) / (high - low), lambda = 2 pi / f
    const Number low(rotation_.low);
    e = (Number(rotation_.original_length) * unscaled / two_pi<Digits>() - low) / (Number(rotation_.high) - low);
  } else {  // yarn: 1 - (i - a) / (b - a)
    Number a, b;
    if (ends_) {
      a = Number(ends_->first);
      b = Number(ends_->last);
    } else {
      a = maximum(index_of_turns<Digits>(rotation_.high), Number(0));
      b = minimum(index_of_turns<Digits>(rotation_.low), Number(static_cast<double>(rotated_ - 1)));
    }
    e = (Number(static_cast<double>(i)) - a) / (b - a);
    e = minimum(maximum(e, Number(0)), Number(1));
    return Number(1) - e;
  }
  return minimum(maximum(e, Number(0)), Number(1));
}

template <unsigned Digits>
Enclosure<Digits> RopeFrequencies::frequency(std::int64_t i) const {
  using Number = Enclosure<Digits>;
  if (is_zero(i)) return Number(0);
  // theta^(-2i/R) = exp(-(2i/R) log theta); exactly 1 for i = 0.
  Number log_theta = log_of(Number(rope_.theta));
  if (rotation_.scaling == QKCTS_SCALING_NTK) {  // theta s^(R/(R-2))
    const Number log_factor = log_of(Number(rotation_.factor)) * Number(static_cast<double>(rotated_));
    log_theta += log_factor / Number(static_cast<double>(rotated_ - 2));
  }
  log_theta *= Number(static_cast<double>(-2 * i));
  log_theta /= Number(static_cast<double>(rotated_));
  Number unscaled;
  set_exp(unscaled, log_theta);
  switch (rotation_.scaling) {
    case QKCTS_SCALING_LINEAR:
      return unscaled / Number(rotation_.factor);
    case QKCTS_SCALING_YARN:
    case QKCTS_SCALING_LLAMA3: {
      const Number e = share(i, unscaled);
      return (Number(1) - e) * unscaled / Number(rotation_.factor) + e * unscaled;
    }
    default:
      return unscaled;
  }
}

}  // namespace qkcts
