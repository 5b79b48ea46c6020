// SPDX-License-Identifier: Apache-2.0
// For the tests of double words: how far one stands from an exact number, and numbers that strain the algorithms.
#pragma once

#include <cmath>
#include <cstdint>

#include "reference/double_word_scalar.hpp"
#include "reference/real.hpp"

namespace qkcts {

inline Real exactly(Word w, long bits = 1200) {
  Real x(bits, w.h);
  mpfr_add_d(x.get(), x.get(), w.l, MPFR_RNDN);
  return x;
}

// |w - exact|, rounded up.
inline double distance(Word w, RealView exact) {
  Real x = exactly(w);
  mpfr_sub(x.get(), x.get(), exact, MPFR_RNDA);
  mpfr_abs(x.get(), x.get(), MPFR_RNDN);
  return mpfr_get_d(x.get(), MPFR_RNDU);
}

// Relative, in units of u^2; 0 for an exact zero.
inline double relative_distance(Word w, RealView exact) {
  const double d = distance(w, exact);
  return d == 0 ? 0 : d / std::fabs(mpfr_get_d(exact, MPFR_RNDN)) / u2;
}

class WordSource {
 public:
  explicit WordSource(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u) {}
  std::uint64_t bits() {  // SplitMix64
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  std::uint64_t below(std::uint64_t n) { return bits() % n; }

  // Either sign, exponent within +-reach. Every other significand is dense, the others have long runs of equal bits,
  // where rounding errors are largest.
  double number(int reach) {
    double significand = 1 + unit();
    switch (below(4)) {
      case 0:
        significand = 1 + std::ldexp(static_cast<double>(1 + below(3)), -static_cast<int>(below(52)) - 1);
        break;
      case 1:
        significand = 2 - std::ldexp(static_cast<double>(1 + below(3)), -static_cast<int>(below(50)) - 2);
        break;
      default:
        break;
    }
    const int exponent = static_cast<int>(below(2 * static_cast<std::uint64_t>(reach) + 1)) - reach;
    return (below(2) == 0 ? 1 : -1) * std::ldexp(significand, exponent);
  }

  // A double word; its low word is often as large as it may be.
  Word word(int reach) {
    const double h = number(reach);
    const int below_h = below(3) == 0 ? static_cast<int>(below(30)) : 0;
    const double l = std::ldexp(number(0), std::ilogb(h) - 54 - below_h);
    return {h, h + l == h ? l : l / 2};
  }

 private:
  std::uint64_t state_;
};

}  // namespace qkcts
