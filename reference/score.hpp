// SPDX-License-Identifier: Apache-2.0
// From a dot product to the number that the softmax sees: scale, additive bias, soft-cap.
#pragma once

#include <cmath>

#include "reference/case_values.hpp"
#include "reference/real.hpp"

namespace qkcts {

// tau = scale / T.
template <unsigned Digits>
Enclosure<Digits> score_factor(const CaseValues& values) {
  using Number = Enclosure<Digits>;
  const qkcts_score& score = values.terms.score;
  Number tau(1);
  switch (score.scale_form) {
    case QKCTS_SCALE_CONSTANT:
      tau = Number(score.scale_value);
      break;
    case QKCTS_SCALE_INV_SQRT_SCALAR:
      tau /= sqrt_of_nonnegative(Number(score.scale_value));
      break;
    case QKCTS_SCALE_LEARNED_SCALAR:
      tau = Number(values.learned_scale);
      break;
    default:
      tau /= sqrt_of_nonnegative(Number(static_cast<double>(values.shape.head_dim)));
  }
  if (score.temperature != 0) tau /= Number(score.temperature);
  return tau;
}

// c * tanh(x / c), c > 0.
template <unsigned Digits>
Enclosure<Digits> soft_cap(const Enclosure<Digits>& x, double c) {
  const Enclosure<Digits> cap(c);
  Enclosure<Digits> result;
  set_tanh(result, Enclosure<Digits>(x / cap));
  result *= cap;
  return result;
}

// Stage `capped`; `bias` is finite, 0 without one.
template <unsigned Digits>
Enclosure<Digits> capped_score(const Enclosure<Digits>& score, double bias, const qkcts_score& terms) {
  Enclosure<Digits> x = score;
  if (terms.bias_order == QKCTS_BIAS_BEFORE_SOFTCAP) x += Enclosure<Digits>(bias);
  if (terms.softcap > 0) x = soft_cap(x, terms.softcap);
  if (terms.bias_order == QKCTS_BIAS_AFTER_SOFTCAP) x += Enclosure<Digits>(bias);
  return x;
}

// Stage `capped` under a bias of -inf.
inline double capped_at_minus_infinity(const qkcts_score& terms) {
  const bool bounded = terms.softcap > 0 && terms.bias_order == QKCTS_BIAS_BEFORE_SOFTCAP;
  return bounded ? -terms.softcap : -INFINITY;
}

}  // namespace qkcts
