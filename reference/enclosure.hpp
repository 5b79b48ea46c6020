// SPDX-License-Identifier: Apache-2.0
// Enclosures of fixed precision: two MPFR numbers lower <= upper with lower <= z <= upper for the real number z that
// they stand for. Every operation gives the narrowest such pair of its precision. What two enclosures have in common is
// not known to it, so that x - x is wide; only of x * x, one object twice, it is known that it is a square.
//
// The operations are those of MPFI, to the bit and with its signs of zero (a lower end +0, an upper end -0; see
// enclosure_test.cpp). They stand here because of time: squares, quotients and rotations of 256 lanes of 128 bits take
// 100 us, with Boost's number of MPFI 315 us, since that takes memory from the heap for every result and most
// intermediate ones, and with Boost's numbers of MPFR without heap (allocate_stack) as ends 141 us, since these are set
// to 0 when they are made and rounded when they are copied. Here the limbs are part of the number, and copied as such.
#pragma once

#include <mpfr.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace qkcts {

// Binary digits that hold so many decimal ones.
constexpr long bits_of_digits(unsigned digits) {
  return static_cast<long>(digits) * 1000 / 301 + (digits * 1000 % 301 != 0 ? 2 : 1);
}

template <unsigned Digits>
class Enclosure {
 public:
  static constexpr long bits = bits_of_digits(Digits);

  Enclosure() { begin(); }  // not a number
  Enclosure(double x) {     // NOLINT(google-explicit-constructor)
    const auto pattern = std::bit_cast<std::uint64_t>(x);
    const std::uint64_t field = pattern >> 52 & 0x7ff;
    if (x == 0) {
      begin(MPFR_ZERO_KIND, -MPFR_ZERO_KIND, 0);
    } else if (field != 0 && field != 0x7ff) {  // a normal number: its bits as they are
      const int kind = x < 0 ? -MPFR_REGULAR_KIND : MPFR_REGULAR_KIND;
      for (auto& limbs : limbs_) limbs.back() = pattern << 11 | std::uint64_t{1} << 63;
      begin(kind, kind, static_cast<mpfr_exp_t>(field) - 1022);
    } else {
      begin();
      mpfr_set_d(left(), x, MPFR_RNDD);
      mpfr_set_d(right(), x, MPFR_RNDU);
    }
  }
  Enclosure(unsigned long x) {  // NOLINT(google-explicit-constructor)
    begin();
    mpfr_set_ui(left(), x, MPFR_RNDD);
    mpfr_set_ui(right(), x, MPFR_RNDU);
    sign_zeros();
  }
  Enclosure(int x) : Enclosure(static_cast<double>(x)) {}  // NOLINT(google-explicit-constructor)
  Enclosure(const Enclosure& other) { take(other); }
  Enclosure& operator=(const Enclosure& other) {
    if (this != &other) take(other);
    return *this;
  }

  mpfr_ptr left() { return &ends_[0]; }
  mpfr_ptr right() { return &ends_[1]; }
  mpfr_srcptr left() const { return &ends_[0]; }
  mpfr_srcptr right() const { return &ends_[1]; }

  // After the ends have been set one by one.
  void sign_zeros() {
    if (mpfr_zero_p(left()) != 0) mpfr_set_zero(left(), 1);
    if (mpfr_zero_p(right()) != 0) mpfr_set_zero(right(), -1);
  }

  Enclosure& operator+=(const Enclosure& y) {
    mpfr_add(left(), left(), y.left(), MPFR_RNDD);
    mpfr_add(right(), right(), y.right(), MPFR_RNDU);
    sign_zeros();
    return *this;
  }
  Enclosure& operator-=(const Enclosure& y) { return *this = *this - y; }
  Enclosure& operator*=(const Enclosure& y) { return *this = *this * y; }
  Enclosure& operator/=(const Enclosure& y) { return *this = *this / y; }

  Enclosure& operator+=(unsigned long y) {
    mpfr_add_ui(left(), left(), y, MPFR_RNDD);
    mpfr_add_ui(right(), right(), y, MPFR_RNDU);
    sign_zeros();
    return *this;
  }
  Enclosure& operator*=(unsigned long y) {
    mpfr_mul_ui(left(), left(), y, MPFR_RNDD);
    mpfr_mul_ui(right(), right(), y, MPFR_RNDU);
    sign_zeros();
    return *this;
  }
  Enclosure& operator/=(unsigned long y) {  // y > 0
    mpfr_div_ui(left(), left(), y, MPFR_RNDD);
    mpfr_div_ui(right(), right(), y, MPFR_RNDU);
    sign_zeros();
    return *this;
  }

  friend Enclosure operator+(const Enclosure& x, const Enclosure& y) {
    Enclosure result;
    mpfr_add(result.left(), x.left(), y.left(), MPFR_RNDD);
    mpfr_add(result.right(), x.right(), y.right(), MPFR_RNDU);
    result.sign_zeros();
    return result;
  }
  friend Enclosure operator-(const Enclosure& x, const Enclosure& y) {
    Enclosure result;
    mpfr_sub(result.left(), x.left(), y.right(), MPFR_RNDD);
    mpfr_sub(result.right(), x.right(), y.left(), MPFR_RNDU);
    result.sign_zeros();
    return result;
  }
  friend Enclosure operator-(const Enclosure& x) {
    Enclosure result;
    mpfr_neg(result.left(), x.right(), MPFR_RNDD);
    mpfr_neg(result.right(), x.left(), MPFR_RNDU);
    result.sign_zeros();
    return result;
  }
  friend Enclosure operator*(const Enclosure& x, const Enclosure& y) {
    Enclosure result;
    result.set_product(x, y);
    return result;
  }
  friend Enclosure operator/(const Enclosure& x, const Enclosure& y) {
    Enclosure result;
    result.set_quotient(x, y);
    return result;
  }
  friend Enclosure operator+(Enclosure x, unsigned long y) { return x += y; }
  friend Enclosure operator*(Enclosure x, unsigned long y) { return x *= y; }
  friend Enclosure operator/(Enclosure x, unsigned long y) { return x /= y; }

  // This number becomes x - m.
  void set_difference(const Enclosure& x, mpfr_srcptr m) {
    mpfr_sub(left(), x.left(), m, MPFR_RNDD);
    mpfr_sub(right(), x.right(), m, MPFR_RNDU);
    sign_zeros();
  }

  // This number becomes f(x) for an f that rises; `f` rounds correctly.
  template <class Function>
  void set_rising(const Enclosure& x, const Function& f) {
    f(left(), x.left(), MPFR_RNDD);
    f(right(), x.right(), MPFR_RNDU);
    sign_zeros();
  }

 private:
  static constexpr std::size_t limb_count = (static_cast<std::size_t>(bits) + GMP_NUMB_BITS - 1) / GMP_NUMB_BITS;

  static_assert(sizeof(mp_limb_t) == sizeof(std::uint64_t) && GMP_NUMB_BITS == 64);

  // Around the limbs as they are.
  void begin(int left_kind = MPFR_NAN_KIND, int right_kind = MPFR_NAN_KIND, mpfr_exp_t exponent = 0) {
    mpfr_custom_init_set(left(), left_kind, exponent, bits, limbs_[0].data());
    mpfr_custom_init_set(right(), right_kind, exponent, bits, limbs_[1].data());
  }
  void take(const Enclosure& other) {
    limbs_ = other.limbs_;
    ends_ = other.ends_;
    mpfr_custom_move(left(), limbs_[0].data());
    mpfr_custom_move(right(), limbs_[1].data());
  }

  bool is_nan() const { return mpfr_nan_p(left()) != 0 || mpfr_nan_p(right()) != 0; }

  // What is 0 stays 0, whatever it is multiplied by.
  static void multiply(mpfr_ptr result, mpfr_srcptr x, mpfr_srcptr y, mpfr_rnd_t rounding) {
    if (mpfr_zero_p(x) != 0 || mpfr_zero_p(y) != 0) {
      mpfr_set_zero(result, 1);
    } else {
      mpfr_mul(result, x, y, rounding);
    }
  }
  // The ends of a product or quotient, each of an end of x and one of y.
  void set_ends_of_product(mpfr_srcptr x_low, mpfr_srcptr y_low, mpfr_srcptr x_high, mpfr_srcptr y_high) {
    multiply(left(), x_low, y_low, MPFR_RNDD);
    multiply(right(), x_high, y_high, MPFR_RNDU);
  }
  void set_ends_of_quotient(mpfr_srcptr x_low, mpfr_srcptr y_low, mpfr_srcptr x_high, mpfr_srcptr y_high) {
    mpfr_div(left(), x_low, y_low, MPFR_RNDD);
    mpfr_div(right(), x_high, y_high, MPFR_RNDU);
  }

  // *this is neither x nor y.
  void set_product(const Enclosure& x, const Enclosure& y) {
    if (x.is_nan() || y.is_nan()) return;
    const bool y_rises = mpfr_sgn(y.left()) >= 0, y_falls = mpfr_sgn(y.right()) <= 0;
    if (mpfr_sgn(x.left()) >= 0) {
      set_ends_of_product(y_rises ? x.left() : x.right(), y.left(), !y_rises && y_falls ? x.left() : x.right(),
                          y.right());
    } else if (mpfr_sgn(x.right()) <= 0) {
      set_ends_of_product(!y_rises && y_falls ? x.right() : x.left(), y.right(), y_rises ? x.right() : x.left(),
                          y.left());
    } else if (y_rises) {
      set_ends_of_product(x.left(), y.right(), x.right(), y.right());
    } else if (y_falls) {
      set_ends_of_product(x.right(), y.left(), x.left(), y.left());
    } else if (&x == &y) {  // a square
      mpfr_set_zero(left(), 1);
      const bool is_left = mpfr_cmpabs(x.left(), x.right()) > 0;
      mpfr_sqr(right(), is_left ? x.left() : x.right(), MPFR_RNDU);
    } else {
      Enclosure other;
      set_ends_of_product(x.left(), y.right(), x.left(), y.left());
      other.set_ends_of_product(x.right(), y.left(), x.right(), y.right());
      mpfr_min(left(), left(), other.left(), MPFR_RNDD);
      mpfr_max(right(), right(), other.right(), MPFR_RNDU);
    }
    sign_zeros();
  }

  // Likewise. Everything is possible where y may be 0.
  void set_quotient(const Enclosure& x, const Enclosure& y) {
    if (x.is_nan() || y.is_nan()) return;
    const bool x_rises = mpfr_sgn(x.left()) >= 0, x_falls = mpfr_sgn(x.right()) <= 0;
    if (mpfr_sgn(y.left()) > 0) {
      set_ends_of_quotient(x.left(), x_rises ? y.right() : y.left(), x.right(),
                           !x_rises && x_falls ? y.right() : y.left());
    } else if (mpfr_sgn(y.right()) < 0) {
      set_ends_of_quotient(x.right(), !x_rises && x_falls ? y.left() : y.right(), x.left(),
                           x_rises ? y.left() : y.right());
    } else {
      mpfr_set_inf(left(), -1);
      mpfr_set_inf(right(), 1);
    }
    sign_zeros();
  }

  std::array<std::array<mp_limb_t, limb_count>, 2> limbs_{};
  std::array<__mpfr_struct, 2> ends_;
};

}  // namespace qkcts
