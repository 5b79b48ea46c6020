// SPDX-License-Identifier: Apache-2.0
// Cosine and sine of computed angles in the arithmetic of a legal variant.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "reference/legal_variant_machine.hpp"

namespace qkcts {

template <typename T>
class LegalAngles {
 public:
  // `lanes` is R.
  LegalAngles(const LegalMachine<T>& machine, const qkcts_rope& rope, const qkcts_rotation& rotation,
              std::int64_t lanes)
      : m_(machine), rope_(rope), rotation_(rotation), lanes_(machine.constant(static_cast<double>(lanes))) {
    if (rotation.angles != QKCTS_ANGLES_COMPUTED) {
      return;
    }
    for (std::int64_t i = 0; i < lanes / 2; ++i) {
      frequencies_.push_back(frequency(m_.constant(static_cast<double>(i))));
    }
  }

  // (C, S) at a position.
  std::pair<T, T> wave(std::int64_t position, std::int64_t pair) const {
    T p = m_.constant(static_cast<double>(position));
    if (scales_position()) {
      p = m_.quotient(p, m_.constant(rotation_.factor));
    }
    const T angle = m_.mul(p, frequencies_[static_cast<std::size_t>(pair)]);
    T c = m_.cos(angle);
    T s = m_.sin(angle);
    if (rotation_.attention_factor != 0 && rotation_.attention_factor != 1) {
      const T factor = m_.constant(rotation_.attention_factor);
      c = m_.mul(c, factor);
      s = m_.mul(s, factor);
    }
    return {c, s};
  }

 private:
  bool scales_position() const { return rotation_.scaling == QKCTS_SCALING_LINEAR && m_.variant().scaled_positions; }

  // base^exponent.
  T power(T base, T exponent) const {
    switch (m_.variant().frequency) {
      case LegalVariant::Frequency::exponential:
        return m_.exp(m_.mul(exponent, m_.log(base)), 1);
      case LegalVariant::Frequency::exponential2:
        return m_.exp2(m_.mul(exponent, m_.log2(base)), 1);
      default:
        return m_.pow(base, exponent);
    }
  }

  T plain(T i) const {
    T base = m_.constant(rope_.theta);
    if (rotation_.scaling == QKCTS_SCALING_NTK) {
      base = m_.mul(base, power(m_.constant(rotation_.factor), m_.quotient(lanes_, lanes_ - 2)));
    }
    const T exponent = m_.quotient(2 * i, lanes_);
    return m_.variant().frequency == LegalVariant::Frequency::reciprocal ? m_.div(T(1), power(base, exponent))
                                                                         : power(base, -exponent);
  }

  T blended(T f, T share) const {
    const T scaled = m_.quotient(f, m_.constant(rotation_.factor));
    return m_.add(m_.mul(m_.sub(T(1), share), scaled), m_.mul(share, f));
  }

  T two_pi() const { return m_.constant(6.283185307179586); }

  // An end of yarn's ramp.
  T ramp_end(double turns) const {
    const T argument = m_.quotient(m_.constant(rotation_.original_length), m_.mul(two_pi(), m_.constant(turns)));
    return m_.quotient(m_.mul(lanes_, m_.log(argument)), m_.mul(T(2), m_.log(m_.constant(rope_.theta))));
  }

  T yarn_share(T i) const {
    T a = ramp_end(rotation_.high);
    T b = ramp_end(rotation_.low);
    if (rotation_.untruncated == 0) {
      a = std::floor(a);
      b = std::ceil(b);
    }
    a = std::max(a, T(0));
    b = std::min(b, lanes_ - 1);
    if (a == b) {
      b = m_.add(b, m_.constant(0.001));
    }
    const T ramp = std::clamp(m_.quotient(m_.sub(i, a), m_.sub(b, a)), T(0), T(1));
    return m_.sub(T(1), ramp);
  }

  T llama3(T f) const {
    const T length = m_.constant(rotation_.original_length);
    const T low = m_.constant(rotation_.low);
    const T high = m_.constant(rotation_.high);
    const T wavelength = m_.div(two_pi(), f);
    if (wavelength < m_.div(length, high)) {
      return f;
    }
    if (wavelength > m_.div(length, low)) {
      return m_.quotient(f, m_.constant(rotation_.factor));
    }
    return blended(f, m_.quotient(m_.sub(m_.quotient(length, wavelength), low), m_.sub(high, low)));
  }

  T frequency(T i) const {
    const T f = plain(i);
    switch (rotation_.scaling) {
      case QKCTS_SCALING_LINEAR:
        return scales_position() ? f : m_.quotient(f, m_.constant(rotation_.factor));
      case QKCTS_SCALING_YARN:
        return blended(f, yarn_share(i));
      case QKCTS_SCALING_LLAMA3:
        return llama3(f);
      case QKCTS_SCALING_PROPORTIONAL:
        return i < std::floor(m_.mul(m_.constant(rotation_.factor), lanes_ / 2)) ? f : T(0);
      default:
        return f;
    }
  }

  const LegalMachine<T>& m_;
  const qkcts_rope& rope_;
  const qkcts_rotation& rotation_;
  T lanes_;
  std::vector<T> frequencies_;
};

}  // namespace qkcts
