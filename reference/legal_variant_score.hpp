// SPDX-License-Identifier: Apache-2.0
// Scale, temperatures, soft cap and biases of a score in the arithmetic of a legal variant.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/legal_variant_machine.hpp"

namespace qkcts {

// Number by which scores are multiplied where a kernel folds the other base into them: log2 e, or ln 2 for weights 2^x.
template <typename T>
T other_base_factor(const LegalMachine<T>& machine, const qkcts_contract& terms) {
  return terms.softmax.base == QKCTS_BASE_TWO ? machine.ln_2() : machine.log2_e();
}

template <typename T>
class LegalScore {
 public:
  LegalScore(const Case& c, const LegalMachine<T>& machine, const LegalVariant& variant)
      : case_(c), m_(machine), variant_(variant), terms_(c.contract.terms) {}

  // Dot product with the scale where the variant puts it; `factor` is 1 or what is folded in for another base.
  T scaled_dot(const T* q, const T* k, std::int64_t h, double position, T factor) const {
    const auto n = static_cast<std::size_t>(case_.shape.head_dim);
    std::vector<T> left(q, q + n), right(k, k + n);
    T scale = tau(h);
    if (temperature() != T(1)) {
      scale = m_.quotient(scale, temperature());
    }
    T by_position = T(1);
    if (terms_.logits.query_temperature != QKCTS_QUERY_TEMPERATURE_NONE) {
      const T here = query_temperature(position);
      if (variant_.temperature == LegalVariant::Temperature::with_scale) {
        scale = m_.mul(scale, here);
      } else if (variant_.temperature == LegalVariant::Temperature::on_query && terms_.rounding.product == 0) {
        scale_all(left, here);
      } else {
        by_position = here;
      }
    }
    if (factor != T(1)) {
      scale = m_.mul(scale, factor);
    }
    if (const std::uint32_t point = terms_.rounding.scaled_q; point != 0) {
      scale_all(left, scale);
      if (by_position != T(1)) {
        scale_all(left, by_position);
      }
      for (T& value : left) {
        value = m_.point(value, point, terms_.rounding.saturate != 0);
      }
      return m_.product(left.data(), right.data(), n, m_.profile().u_q, m_.profile().u_k);
    }
    const T s = terms_.rounding.product != 0 ? rounded_product(left, right, scale) : product(left, right, scale);
    return by_position == T(1) ? s : m_.mul(s, by_position);
  }

  T capped(T s, T bias, T slope, std::int64_t distance) const {
    const qkcts_score& score = terms_.score;
    const T count = m_.constant(static_cast<double>(distance));
    if (score.bias_order == QKCTS_BIAS_BEFORE_SOFTCAP) {
      s = m_.add(s, bias);
    }
    if (score.softcap > 0) {
      const T c = m_.constant(score.softcap);
      s = m_.mul(m_.tanh(m_.quotient(s, c)), c);
    }
    const bool tensor = score.bias_order == QKCTS_BIAS_AFTER_SOFTCAP;
    if (terms_.logits.alibi == QKCTS_ALIBI_NONE) {
      return tensor ? m_.add(s, bias) : s;
    }
    const T linear = m_.mul(slope, count);
    if (!tensor) {
      return variant_.biases == LegalVariant::Biases::fused ? m_.fma(slope, count, s) : m_.add(s, linear);
    }
    switch (variant_.biases) {
      case LegalVariant::Biases::linear_first:
        return m_.add(m_.add(s, linear), bias);
      case LegalVariant::Biases::together:
        return m_.add(s, m_.add(linear, bias));
      case LegalVariant::Biases::fused:
        return m_.fma(slope, count, m_.add(s, bias));
      default:
        return m_.add(m_.add(s, bias), linear);
    }
  }

 private:
  T tau(std::int64_t h) const {
    const qkcts_score& score = terms_.score;
    switch (score.scale_form) {
      case QKCTS_SCALE_INV_SQRT_HEAD_DIM:
        return inverse_root(m_.constant(static_cast<double>(case_.shape.head_dim)));
      case QKCTS_SCALE_INV_SQRT_SCALAR:
        return inverse_root(m_.constant(score.scale_value));
      case QKCTS_SCALE_CONSTANT:
        return m_.constant(score.scale_value);
      default:
        return learned(h);
    }
  }

  T learned(std::int64_t h) const {
    const qkcts_logits& logits = terms_.logits;
    const std::int64_t index = logits.scale_axes == QKCTS_SCALE_PER_HEAD ? h : 0;
    const T t = m_.read(case_.inputs.at(Input::scale).value(static_cast<std::size_t>(index)));
    if (logits.scale_exp_cap == 0) {
      return t;
    }
    const T x = std::min(t, m_.constant(logits.scale_exp_cap));
    return variant_.base == LegalVariant::Base::natural ? m_.exp(x, 1) : m_.exp2(m_.mul(x, m_.log2_e()), 1);
  }

  // 1 + alpha ln(1 + n), or of the ratio of positions.
  T query_temperature(double position) const {
    const qkcts_logits& logits = terms_.logits;
    const auto logarithm = [&](T x) {
      return variant_.base == LegalVariant::Base::natural ? m_.log(x) : m_.mul(m_.log2(x), m_.ln_2());
    };
    T log = T(0);
    if (logits.query_temperature == QKCTS_QUERY_TEMPERATURE_LOG_RATIO) {
      const T ratio = m_.quotient(m_.constant(position + logits.query_shift), m_.constant(logits.query_period));
      if (variant_.logarithm_first && ratio > T(0)) {
        log = std::max(logarithm(ratio), T(0));
      } else {
        log = logarithm(std::max(ratio, T(1)));
      }
    } else {
      log = logarithm(m_.constant(1 + std::floor((position + logits.query_shift) / logits.query_period)));
    }
    const T alpha = m_.constant(logits.query_alpha);
    return variant_.sum == LegalVariant::Sum::fused ? m_.fma(alpha, log, T(1)) : m_.add(T(1), m_.mul(alpha, log));
  }

  T inverse_root(T x) const {
    return variant_.root == LegalVariant::Root::reciprocal_root ? m_.rsqrt(x) : m_.div(T(1), m_.sqrt(x));
  }

  T temperature() const { return m_.constant(terms_.score.temperature > 0 ? terms_.score.temperature : 1); }

  void scale_all(std::vector<T>& x, T factor) const {
    for (T& value : x) {
      value = m_.mul(value, factor);
    }
  }

  T product(std::vector<T>& left, std::vector<T>& right, T scale) const {
    const std::size_t n = left.size();
    switch (variant_.scale) {
      case LegalVariant::Scale::into_q:
        scale_all(left, scale);
        return m_.product(left.data(), right.data(), n, m_.profile().u_q, m_.profile().u_k);
      case LegalVariant::Scale::into_both: {
        if (scale < T(0)) {
          break;
        }
        const T root = m_.sqrt(scale);
        scale_all(left, root);
        scale_all(right, root);
        return m_.product(left.data(), right.data(), n, m_.profile().u_q, m_.profile().u_k);
      }
      case LegalVariant::Scale::divide: {
        const bool alone = terms_.logits.query_temperature == QKCTS_QUERY_TEMPERATURE_NONE ||
                           variant_.temperature != LegalVariant::Temperature::with_scale;
        if (terms_.score.scale_form != QKCTS_SCALE_INV_SQRT_HEAD_DIM || !alone) {
          break;
        }
        const T dot = m_.product(left.data(), right.data(), n, m_.profile().u_q, m_.profile().u_k);
        const T s = m_.quotient(dot, m_.sqrt(m_.constant(static_cast<double>(n))));
        return temperature() != T(1) ? m_.quotient(s, temperature()) : s;
      }
      default:
        break;
    }
    return m_.mul(m_.product(left.data(), right.data(), n, m_.profile().u_q, m_.profile().u_k), scale);
  }

  // The product at a point of its own; nothing of the scale stands before it.
  T rounded_product(const std::vector<T>& left, const std::vector<T>& right, T scale) const {
    const std::size_t n = left.size();
    const T dot = m_.point(m_.product(left.data(), right.data(), n, m_.profile().u_q, m_.profile().u_k),
                           terms_.rounding.product, terms_.rounding.saturate != 0);
    const bool divides = variant_.scale == LegalVariant::Scale::divide &&
                         terms_.score.scale_form == QKCTS_SCALE_INV_SQRT_HEAD_DIM && temperature() == T(1) &&
                         terms_.logits.query_temperature == QKCTS_QUERY_TEMPERATURE_NONE;
    return divides ? m_.quotient(dot, m_.sqrt(m_.constant(static_cast<double>(n)))) : m_.mul(dot, scale);
  }

  const Case& case_;
  const LegalMachine<T>& m_;
  const LegalVariant& variant_;
  const qkcts_contract& terms_;
};

}  // namespace qkcts
