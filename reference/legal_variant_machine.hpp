// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a profile: one rounding per operation, flushing where it flushes, functions off by K ulp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "conformance/machine_profile.hpp"
#include "reference/legal_variant.hpp"

namespace qkcts {

template <typename T>
class LegalMachine {
  using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;

 public:
  LegalMachine(const Profile& profile, const LegalVariant& variant)
      : profile_(profile),
        variant_(variant),
        narrow_(profile.accumulator == Format::binary16),
        roundoff_(static_cast<Wide>(unit_roundoff(profile.accumulator))),
        smallest_(static_cast<T>(smallest_normal(profile.accumulator))),
        quantum_(static_cast<T>(smallest_subnormal(profile.accumulator))) {}

  T flush(T x) const { return profile_.flush_to_zero && std::fabs(x) < smallest_ ? std::copysign(T(0), x) : x; }
  T read(double x) const {
    const T value = narrow_ ? narrowed(x) : static_cast<T>(x);
    return profile_.denormals_are_zero && std::fabs(value) < smallest_ ? T(0) : value;
  }
  // binary16 is computed in binary64 and rounded once: sums and products of two of its numbers are exact there.
  T add(T a, T b) const { return flush(narrow_ ? narrowed(precise(a) + precise(b)) : a + b); }
  T sub(T a, T b) const { return flush(narrow_ ? narrowed(precise(a) - precise(b)) : a - b); }
  T mul(T a, T b) const { return flush(narrow_ ? narrowed(precise(a) * precise(b)) : a * b); }
  T fma(T a, T b, T c) const {
    return flush(narrow_ ? narrowed(precise(a) * precise(b) + precise(c)) : std::fma(a, b, c));
  }

  // Functions. `sign` is the direction of the error where the variant lets the caller choose it.
  T div(T a, T b) const { return off(wide(a) / wide(b), profile_.k_div, sign()); }
  T sqrt(T a) const { return off(std::sqrt(wide(a)), profile_.k_sqrt, sign()); }
  T rsqrt(T a) const { return off(1 / std::sqrt(wide(a)), profile_.k_rsqrt, sign()); }
  T tanh(T a) const {
    const double ulps = std::max(profile_.k_tanh, profile_.a_tanh / (2 * static_cast<double>(roundoff_)));
    return off(std::tanh(wide(a)), ulps, sign());
  }
  T log(T a) const { return off(std::log(wide(a)), profile_.k_log, sign()); }
  T log2(T a) const { return off(std::log2(wide(a)), profile_.k_log, sign()); }
  // Logarithms of row sums have an absolute error besides.
  T sum_log(T a) const { return shifted_log(std::log(wide(a))); }
  T sum_log2(T a) const { return shifted_log(std::log2(wide(a))); }
  T pow(T a, T b) const { return off(std::pow(wide(a), wide(b)), profile_.k_pow, sign()); }
  T cos(T a) const { return off(std::cos(wide(a)), profile_.k_cos, sign()); }
  T sin(T a) const { return off(std::sin(wide(a)), profile_.k_cos, sign()); }
  T exp(T a, int direction) const { return off(std::exp(wide(a)), profile_.k_exp, sign(direction)); }
  T exp2(T a, int direction) const { return off(std::exp2(wide(a)), profile_.k_exp, sign(direction)); }

  // A number of the contract in the accumulator format.
  T constant(double x) const { return read(x); }
  T log2_e() const { return constant(0x1.71547652b82fep+0); }
  T ln_2() const { return constant(0x1.62e42fefa39efp-1); }

  // a / b as the variant divides.
  T quotient(T a, T b) const {
    return variant_.quotient == LegalVariant::Quotient::reciprocal ? mul(a, div(T(1), b)) : div(a, b);
  }

  T store(T x, Format format) const {
    T stored = static_cast<T>(decode(format, encode(format, static_cast<double>(x))));
    if (profile_.flush_to_zero && std::fabs(static_cast<double>(stored)) < smallest_normal(format)) {
      stored = T(0);
    }
    return stored;
  }

  // A number behind a rounding point of the contract (a qkcts_format, 0: none), as the accumulator reads it back.
  T point(T x, std::uint32_t format, bool saturates) const {
    if (format == 0) {
      return x;
    }
    const auto f = static_cast<Format>(format);
    const std::uint64_t pattern = encode(f, precise(x));
    double rounded = decode(f, pattern);
    if (variant_.cut_at_points && std::fabs(rounded) > std::fabs(precise(x))) {
      rounded = decode(f, pattern - 1);
    }
    if (saturates && !std::isfinite(rounded)) {
      rounded = std::copysign(parameters(f).largest, precise(x));
    }
    if (profile_.flush_to_zero && std::fabs(rounded) < smallest_normal(f)) {
      rounded = 0;
    }
    return read(rounded);
  }

  // A number as a matrix unit reads it, where the profile says that it drops bits: cut off, or to nearest, ties away.
  T fed(T x, double u) const {
    const bool unit = variant_.sum == LegalVariant::Sum::matrix;
    if (u == 0 || x == T(0) || !std::isfinite(x) || (variant_.feed == LegalVariant::Feed::whole && !unit)) {
      return x;
    }
    if (profile_.denormals_are_zero && std::fabs(x) < smallest_) {
      return T(0);
    }
    const int last = std::ilogb(x) + std::ilogb(u);
    const T scaled = std::ldexp(x, -last);
    return std::ldexp(variant_.feed == LegalVariant::Feed::nearest ? std::round(scaled) : std::trunc(scaled), last);
  }

  T sum(std::vector<T> terms) const { return sum_range(terms.data(), terms.size()); }
  T dot(const T* a, const T* b, std::size_t n) const;
  // The same for the two products of attention, which a matrix unit may form; it reads its operands to within u_a, u_b.
  T product(const T* a, const T* b, std::size_t n, double u_a, double u_b) const;

  const Profile& profile() const { return profile_; }
  const LegalVariant& variant() const { return variant_; }

 private:
  static Wide wide(T x) { return static_cast<Wide>(x); }
  static double precise(T x) { return static_cast<double>(x); }
  static T narrowed(double x) { return static_cast<T>(decode(Format::binary16, encode(Format::binary16, x))); }
  T rounded(Wide x) const { return narrow_ ? narrowed(static_cast<double>(x)) : static_cast<T>(x); }
  T shifted_log(Wide exact) const {
    const int direction = sign();
    return off(exact + direction * static_cast<Wide>(profile_.b_log), profile_.k_log, direction);
  }

  int sign(int direction = 0) const {
    switch (variant_.functions) {
      case LegalVariant::Functions::high:
        return 1;
      case LegalVariant::Functions::low:
        return -1;
      case LegalVariant::Functions::mixed:
        ++calls_;
        return ((calls_ * 0x9e3779b97f4a7c15u) >> 63) != 0 ? 1 : -1;
      case LegalVariant::Functions::towards:
        return direction != 0 ? direction : 1;
      default:
        return 0;
    }
  }

  // The correctly rounded result, or one as far off as K ulp allow: 2(K - 1/2)u and a rounding of u make 2Ku.
  T off(Wide exact, double ulps, int direction) const {
    const Wide edge = std::min(Wide(0.9999), 1 - 2 * roundoff_);  // what the two roundings together are of second order
    const Wide moved = exact * (1 + direction * static_cast<Wide>(2 * ulps - 1) * roundoff_ * edge);
    T result = rounded(moved);
    if (std::fabs(result) < smallest_ && direction != 0 && exact != 0) {
      result = rounded(exact + direction * std::floor(static_cast<Wide>(ulps - 0.5)) * static_cast<Wide>(quantum_));
    }
    return flush(result);
  }

  T sum_range(const T* terms, std::size_t n) const;
  bool storable(const T* x, std::size_t n) const;
  T matrix_block(T accumulator, const T* a, const T* b, std::size_t n) const;

  const Profile& profile_;
  const LegalVariant& variant_;
  bool narrow_;  // the accumulator is binary16
  Wide roundoff_;
  T smallest_, quantum_;
  mutable std::uint64_t calls_ = 0;
};

template <typename T>
T LegalMachine<T>::sum_range(const T* terms, std::size_t n) const {
  if (n == 0) {
    return T(0);
  }
  switch (variant_.sum) {
    case LegalVariant::Sum::reversed: {
      T sum = terms[n - 1];
      for (std::size_t i = n - 1; i-- > 0;) {
        sum = add(sum, terms[i]);
      }
      return sum;
    }
    case LegalVariant::Sum::pairwise:
      return n == 1 ? terms[0] : add(sum_range(terms, n / 2), sum_range(terms + n / 2, n - n / 2));
    case LegalVariant::Sum::lanes8: {
      T lanes[8] = {};
      for (std::size_t i = 0; i < n; ++i) {
        lanes[i % 8] = add(lanes[i % 8], terms[i]);
      }
      for (std::size_t width = 4; width > 0; width /= 2) {
        for (std::size_t i = 0; i < width; ++i) {
          lanes[i] = add(lanes[i], lanes[i + width]);
        }
      }
      return lanes[0];
    }
    default: {
      T sum = terms[0];
      for (std::size_t i = 1; i < n; ++i) {
        sum = add(sum, terms[i]);
      }
      return sum;
    }
  }
}

template <typename T>
T LegalMachine<T>::dot(const T* a, const T* b, std::size_t n) const {
  if (variant_.sum == LegalVariant::Sum::fused) {
    T sum = T(0);
    for (std::size_t i = 0; i < n; ++i) {
      sum = fma(a[i], b[i], sum);
    }
    return sum;
  }
  std::vector<T> products(n);
  for (std::size_t i = 0; i < n; ++i) {
    products[i] = mul(a[i], b[i]);
  }
  return sum_range(products.data(), n);
}

template <typename T>
bool LegalMachine<T>::storable(const T* x, std::size_t n) const {
  return std::all_of(x, x + n, [&](T value) {
    const auto wanted = static_cast<double>(value);
    return decode(profile_.storage, encode(profile_.storage, wanted)) == wanted;
  });
}

// Exact products and the accumulator, aligned to the largest exponent (of a product: the sum of its factors', by
// leading bits or as they are stored), cut off after F fraction bits, added exactly and rounded toward zero (to nearest
// in binary16): docs/budgets.md, "Arithmetic".
template <typename T>
T LegalMachine<T>::matrix_block(T accumulator, const T* a, const T* b, std::size_t n) const {
  // NaN and infinities pass as in any other unit.
  const auto is_number = [](T x) { return std::isfinite(x); };
  if (!is_number(accumulator) || !std::all_of(a, a + n, is_number) || !std::all_of(b, b + n, is_number)) {
    for (std::size_t i = 0; i < n; ++i) {
      accumulator += a[i] * b[i];
    }
    return accumulator;
  }
  constexpr int lowest = -4000;
  const auto exponent = [](double x) { return x == 0 ? lowest : std::ilogb(x); };
  const int emin = variant_.matrix_aligns_stored ? parameters(profile_.storage).emin : lowest;
  const auto of_factor = [&](T x) { return std::max(exponent(static_cast<double>(x)), emin); };
  int top = exponent(static_cast<double>(accumulator));
  for (std::size_t i = 0; i < n; ++i) {
    if (a[i] != T(0) && b[i] != T(0)) {
      top = std::max(top, of_factor(a[i]) + of_factor(b[i]));
    }
  }
  if (top == lowest) {
    return T(0);
  }
  const int last = top - variant_.matrix_fraction;
  const auto cut = [&](double x) { return std::trunc(std::ldexp(x, -last)); };
  double sum = cut(static_cast<double>(accumulator));
  for (std::size_t i = 0; i < n; ++i) {
    sum += cut(static_cast<double>(a[i]) * static_cast<double>(b[i]));
  }
  const double exact = std::ldexp(sum, last);
  if (narrow_) {
    return flush(narrowed(exact));
  }
  T rounded = static_cast<T>(exact);
  if (std::fabs(static_cast<double>(rounded)) > std::fabs(exact)) {
    rounded = std::nextafter(rounded, T(0));
  }
  return flush(rounded);
}

template <typename T>
T LegalMachine<T>::product(const T* a, const T* b, std::size_t n, double u_a, double u_b) const {
  std::vector<T> left(a, a + n), right(b, b + n);
  for (std::size_t i = 0; i < n; ++i) {
    left[i] = fed(left[i], u_a);
    right[i] = fed(right[i], u_b);
  }
  const bool unit = variant_.sum == LegalVariant::Sum::matrix && profile_.product_growth != 1;
  if (!unit || !storable(left.data(), n) || !storable(right.data(), n)) {
    return dot(left.data(), right.data(), n);
  }
  T accumulator = T(0);
  const auto width = static_cast<std::size_t>(variant_.matrix_products);
  for (std::size_t first = 0; first < n; first += width) {
    accumulator = matrix_block(accumulator, left.data() + first, right.data() + first, std::min(width, n - first));
  }
  return accumulator;
}

}  // namespace qkcts
