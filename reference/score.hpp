// SPDX-License-Identifier: Apache-2.0
// From a dot product to the number that the softmax sees: scale, additive and linear bias, soft-cap.
#pragma once

#include <algorithm>
#include <cmath>

#include "reference/case_values.hpp"
#include "reference/real.hpp"

namespace qkcts {

// scale / T of a query head.
template <unsigned Digits>
Enclosure<Digits> score_factor(const CaseValues& values, std::int64_t h) {
  using Number = Enclosure<Digits>;
  const qkcts_score& score = values.terms.score;
  const double cap = values.terms.logits.scale_exp_cap;
  Number tau(1);
  switch (score.scale_form) {
    case QKCTS_SCALE_CONSTANT:
      tau = Number(score.scale_value);
      break;
    case QKCTS_SCALE_INV_SQRT_SCALAR:
      tau /= sqrt_of_nonnegative(Number(score.scale_value));
      break;
    case QKCTS_SCALE_LEARNED_SCALAR:
      tau = Number(values.learned_scale(h));
      if (cap != 0) set_exp(tau, Number(std::min(values.learned_scale(h), cap)));
      break;
    default:
      tau /= sqrt_of_nonnegative(Number(static_cast<double>(values.shape.head_dim)));
  }
  if (score.temperature != 0) tau /= Number(score.temperature);
  return tau;
}

// 1 + alpha ln(ratio), exact where that is 1.
template <unsigned Digits>
Enclosure<Digits> position_factor(const CaseValues& values, const QueryRatio& ratio) {
  Enclosure<Digits> factor(static_cast<unsigned long>(ratio.over));
  factor /= static_cast<unsigned long>(ratio.under);
  factor = log_of(factor);
  factor *= Enclosure<Digits>(values.terms.logits.query_alpha);
  return factor + 1ul;
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
Enclosure<Digits> capped_score(const Enclosure<Digits>& score, double bias, const LinearBias& linear,
                               const qkcts_score& terms) {
  Enclosure<Digits> x = score;
  if (terms.bias_order == QKCTS_BIAS_BEFORE_SOFTCAP) x += Enclosure<Digits>(bias);
  if (terms.softcap > 0) x = soft_cap(x, terms.softcap);
  if (terms.bias_order == QKCTS_BIAS_AFTER_SOFTCAP) x += Enclosure<Digits>(bias);
  if (linear.slope != 0) x += Enclosure<Digits>(linear.slope) * Enclosure<Digits>(linear.steps);
  return x;
}

// Stage `capped` under a bias of -inf is -inf, unless that bias stands inside a soft-cap: then -c, and the linear bias.
inline bool is_bounded_at_minus_infinity(const qkcts_score& terms) {
  return terms.softcap > 0 && terms.bias_order == QKCTS_BIAS_BEFORE_SOFTCAP;
}

}  // namespace qkcts
