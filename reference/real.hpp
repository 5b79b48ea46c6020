// SPDX-License-Identifier: Apache-2.0
// The one door to GMP, MPFR and Boost.Multiprecision: enclosures of fixed precision and exact rationals.
//
// Precision belongs to the type, never to a process-wide or thread-wide setting, and MPFR's exponent range is never
// changed.
#pragma once

#include <gmp.h>
#include <mpfr.h>

#include <boost/multiprecision/gmp.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "reference/enclosure.hpp"

namespace qkcts {

using Rational = boost::multiprecision::number<boost::multiprecision::gmp_rational, boost::multiprecision::et_off>;

// The precisions of the refinement loop, in Boost's decimal digits: 128, 257, 513, 1025 and 4098 bits.
constexpr std::array<unsigned, 5> level_digits = {38, 77, 154, 308, 1233};
constexpr std::size_t level_count = level_digits.size();

using RealView = mpfr_srcptr;  // borrowed end of an enclosure

// An owned MPFR number of a chosen precision; up to 256 bits it needs no allocation.
class Real {
 public:
  explicit Real(long bits) : allocated_(bits > GMP_NUMB_BITS * static_cast<long>(inline_limbs)) {
    if (allocated_) {
      mpfr_init2(value_, bits);
    } else {
      mpfr_custom_init(limbs_, bits);
      mpfr_custom_init_set(value_, MPFR_ZERO_KIND, 0, bits, limbs_);
    }
  }
  Real(long bits, double x) : Real(bits) { mpfr_set_d(value_, x, MPFR_RNDN); }
  Real(const Real& other) : Real(mpfr_get_prec(other.value_)) { mpfr_set(value_, other.value_, MPFR_RNDN); }
  Real& operator=(const Real&) = delete;
  ~Real() {
    if (allocated_) mpfr_clear(value_);
  }

  mpfr_ptr get() { return value_; }
  mpfr_srcptr get() const { return value_; }

 private:
  static constexpr std::size_t inline_limbs = 4;
  bool allocated_;
  mp_limb_t limbs_[inline_limbs];
  mpfr_t value_;
};

template <unsigned Digits>
RealView lower(const Enclosure<Digits>& x) {
  return x.left();
}
template <unsigned Digits>
RealView upper(const Enclosure<Digits>& x) {
  return x.right();
}

template <unsigned Digits>
constexpr long precision_bits() {
  return Enclosure<Digits>::bits;
}

template <unsigned Digits>
bool is_finite(const Enclosure<Digits>& x) {
  return mpfr_number_p(lower(x)) != 0 && mpfr_number_p(upper(x)) != 0;
}

// Every member of the enclosure is greater than 0.
template <unsigned Digits>
bool is_surely_positive(const Enclosure<Digits>& x) {
  return mpfr_sgn(lower(x)) > 0;
}

// Two enclosures have a common point.
template <unsigned Digits>
bool overlap(const Enclosure<Digits>& x, const Enclosure<Digits>& y) {
  return mpfr_lessequal_p(lower(x), upper(y)) != 0 && mpfr_lessequal_p(lower(y), upper(x)) != 0;
}

// sqrt of a quantity that is known to be >= 0 although its enclosure may reach below 0.
template <unsigned Digits>
Enclosure<Digits> sqrt_of_nonnegative(Enclosure<Digits> x) {
  if (mpfr_sgn(lower(x)) < 0) mpfr_set_zero(x.left(), 1);
  x.set_rising(x, mpfr_sqrt);
  return x;
}

// x = max(x, |y|).
template <unsigned Digits>
void raise_to_magnitude(Enclosure<Digits>& x, const Enclosure<Digits>& y) {
  const bool negative = mpfr_sgn(upper(y)) < 0;
  const bool straddles = mpfr_sgn(lower(y)) < 0 && !negative;
  const RealView least = negative ? upper(y) : lower(y);
  if (!straddles && mpfr_cmpabs(least, lower(x)) > 0) mpfr_abs(x.left(), least, MPFR_RNDD);
  for (const RealView end : {lower(y), upper(y)})
    if (mpfr_cmpabs(end, upper(x)) > 0) mpfr_abs(x.right(), end, MPFR_RNDU);
}

template <unsigned Digits>
Enclosure<Digits> maximum(const Enclosure<Digits>& x, const Enclosure<Digits>& y) {
  Enclosure<Digits> result;
  mpfr_max(result.left(), lower(x), lower(y), MPFR_RNDD);
  mpfr_max(result.right(), upper(x), upper(y), MPFR_RNDU);
  return result;
}

template <unsigned Digits>
Enclosure<Digits> minimum(const Enclosure<Digits>& x, const Enclosure<Digits>& y) {
  Enclosure<Digits> result;
  mpfr_min(result.left(), lower(x), lower(y), MPFR_RNDD);
  mpfr_min(result.right(), upper(x), upper(y), MPFR_RNDU);
  return result;
}

// x = min(max(x, -c), c), exactly: c > 0 is representable in every precision here.
template <unsigned Digits>
void clamp(Enclosure<Digits>& x, double c) {
  for (mpfr_ptr end : {x.left(), x.right()}) {
    if (mpfr_cmp_d(end, c) > 0) mpfr_set_d(end, c, MPFR_RNDN);
    if (mpfr_cmp_d(end, -c) < 0) mpfr_set_d(end, -c, MPFR_RNDN);
  }
}

// Outward enclosure of a rational; a point if the rational is representable.
template <unsigned Digits>
Enclosure<Digits> enclosure_of(const Rational& q) {
  Enclosure<Digits> result;
  mpfr_set_q(result.left(), q.backend().data(), MPFR_RNDD);
  mpfr_set_q(result.right(), q.backend().data(), MPFR_RNDU);
  result.sign_zeros();
  return result;
}

template <unsigned Digits>
Enclosure<Digits> point(RealView x) {
  Enclosure<Digits> result;
  mpfr_set(result.left(), x, MPFR_RNDD);
  mpfr_set(result.right(), x, MPFR_RNDU);
  result.sign_zeros();
  return result;
}

enum class Base { e, two };

// result = base^x, with one power instead of two: b^upper = b^lower b^w <= b^lower (1 + 2w) for 0 <= w <= 1, b <= e.
template <unsigned Digits>
void set_power(Base base, Enclosure<Digits>& result, const Enclosure<Digits>& x) {
  mpfr_ptr left = result.left();
  mpfr_ptr right = result.right();
  Real width(64);
  mpfr_ptr w = width.get();
  mpfr_sub(w, upper(x), lower(x), MPFR_RNDU);
  if (!(mpfr_cmp_ui(w, 1) <= 0)) {
    result.set_rising(x, base == Base::e ? mpfr_exp : mpfr_exp2);
    return;
  }
  const bool inexact = (base == Base::e ? mpfr_exp : mpfr_exp2)(left, lower(x), MPFR_RNDD) != 0;
  mpfr_set(right, left, MPFR_RNDU);
  if (inexact) mpfr_nextabove(right);
  if (mpfr_zero_p(w)) return;
  mpfr_mul_2ui(w, w, 1, MPFR_RNDU);
  mpfr_mul(w, w, right, MPFR_RNDU);
  mpfr_add(right, right, w, MPFR_RNDU);
}

template <unsigned Digits>
void set_exp(Enclosure<Digits>& result, const Enclosure<Digits>& x) {
  set_power(Base::e, result, x);
}

template <unsigned Digits>
Enclosure<Digits> log_of_two() {
  Enclosure<Digits> result;
  mpfr_const_log2(result.left(), MPFR_RNDD);
  mpfr_const_log2(result.right(), MPFR_RNDU);
  return result;
}

template <unsigned Digits>
Enclosure<Digits> two_pi() {
  Enclosure<Digits> result;
  mpfr_const_pi(result.left(), MPFR_RNDD);
  mpfr_const_pi(result.right(), MPFR_RNDU);
  return result * 2ul;
}

// x > 0.
template <unsigned Digits>
Enclosure<Digits> log_of(const Enclosure<Digits>& x) {
  Enclosure<Digits> result;
  result.set_rising(x, mpfr_log);
  return result;
}

// result = tanh(x), with one tanh instead of two: the slope of tanh lies in (0, 1], and tanh < 1.
template <unsigned Digits>
void set_tanh(Enclosure<Digits>& result, const Enclosure<Digits>& x) {
  mpfr_ptr left = result.left();
  mpfr_ptr right = result.right();
  Real width(64);
  mpfr_ptr w = width.get();
  mpfr_sub(w, upper(x), lower(x), MPFR_RNDU);
  const bool inexact = mpfr_tanh(left, lower(x), MPFR_RNDD) != 0;
  mpfr_set(right, left, MPFR_RNDU);
  if (inexact) mpfr_nextabove(right);
  mpfr_add(right, right, w, MPFR_RNDU);
  if (mpfr_cmp_ui(right, 1) > 0) mpfr_set_ui(right, 1, MPFR_RNDU);
}

enum class Wave { cosine, sine };

// |cos'|, |sin'| <= 1: the value at the lower end, widened by the width of the angle and one rounding. Exact at 0.
template <unsigned Digits>
Enclosure<Digits> wave_of(const Enclosure<Digits>& angle, Wave wave) {
  Enclosure<Digits> result;
  mpfr_ptr left = result.left();
  mpfr_ptr right = result.right();
  const auto function = wave == Wave::cosine ? mpfr_cos : mpfr_sin;
  const bool inexact = function(left, lower(angle), MPFR_RNDD) != 0;
  mpfr_set(right, left, MPFR_RNDU);
  if (inexact) mpfr_nextabove(right);
  Real width(64);
  mpfr_sub(width.get(), upper(angle), lower(angle), MPFR_RNDU);
  mpfr_sub(left, left, width.get(), MPFR_RNDD);
  mpfr_add(right, right, width.get(), MPFR_RNDU);
  return result;
}

// The only integer in [lower, upper], if there is exactly one and it is below 2^62.
std::optional<std::int64_t> only_integer(RealView lower, RealView upper);

// The rational value of a finite MPFR number.
Rational rational_of(RealView x);

// "4.0000000000000000000000001e+0": enough digits to tell the ends of a narrow enclosure apart.
std::string decimal_text(RealView x, int digits);

// Throws InputError unless MPFR was built with thread-local state; the first call of a thread also arranges that MPFR's
// caches of constants are freed when the thread ends.
void prepare_thread();

}  // namespace qkcts
