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
 public:
  LegalMachine(const Profile& profile, const LegalVariant& variant) : profile_(profile), variant_(variant) {}

  T flush(T x) const {
    return profile_.flush_to_zero && std::fabs(x) < std::numeric_limits<T>::min() ? std::copysign(T(0), x) : x;
  }
  T read(double x) const {
    const T value = static_cast<T>(x);
    return profile_.denormals_are_zero && std::fabs(value) < std::numeric_limits<T>::min() ? T(0) : value;
  }
  T add(T a, T b) const { return flush(a + b); }
  T sub(T a, T b) const { return flush(a - b); }
  T mul(T a, T b) const { return flush(a * b); }
  T fma(T a, T b, T c) const { return flush(std::fma(a, b, c)); }

  // Functions. `sign` is the direction of the error where the variant lets the caller choose it.
  T div(T a, T b) const { return off(wide(a) / wide(b), profile_.k_div, sign()); }
  T sqrt(T a) const { return off(std::sqrt(wide(a)), profile_.k_sqrt, sign()); }
  T rsqrt(T a) const { return off(1 / std::sqrt(wide(a)), profile_.k_rsqrt, sign()); }
  T tanh(T a) const { return off(std::tanh(wide(a)), profile_.k_tanh, sign()); }
  T log(T a) const { return off(std::log(wide(a)), profile_.k_log, sign()); }
  T log2(T a) const { return off(std::log2(wide(a)), profile_.k_log, sign()); }
  T pow(T a, T b) const { return off(std::pow(wide(a), wide(b)), profile_.k_pow, sign()); }
  T cos(T a) const { return off(std::cos(wide(a)), profile_.k_cos, sign()); }
  T sin(T a) const { return off(std::sin(wide(a)), profile_.k_cos, sign()); }
  T exp(T a, int direction) const { return off(std::exp(wide(a)), profile_.k_exp, sign(direction)); }
  T exp2(T a, int direction) const { return off(std::exp2(wide(a)), profile_.k_exp, sign(direction)); }

  // A number of the contract in the accumulator format.
  T constant(double x) const { return read(x); }

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

  T sum(std::vector<T> terms) const { return sum_range(terms.data(), terms.size()); }
  T dot(const T* a, const T* b, std::size_t n) const;
  // The same for the two products of attention, which a matrix unit may form.
  T product(const T* a, const T* b, std::size_t n) const;

  const Profile& profile() const { return profile_; }
  const LegalVariant& variant() const { return variant_; }

 private:
  using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;
  static Wide wide(T x) { return static_cast<Wide>(x); }

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
    constexpr auto u = static_cast<Wide>(std::numeric_limits<T>::epsilon()) / 2;
    const Wide moved = exact * (1 + direction * static_cast<Wide>(2 * ulps - 1) * u * Wide(0.9999));
    T result = static_cast<T>(moved);
    if (std::fabs(result) < std::numeric_limits<T>::min() && direction != 0 && exact != 0) {
      result = static_cast<T>(exact + direction * std::floor(static_cast<Wide>(ulps - 0.5)) *
                                          static_cast<Wide>(std::numeric_limits<T>::denorm_min()));
    }
    return flush(result);
  }

  T sum_range(const T* terms, std::size_t n) const;
  bool storable(const T* x, std::size_t n) const;
  T matrix_block(T accumulator, const T* a, const T* b, std::size_t n) const;

  const Profile& profile_;
  const LegalVariant& variant_;
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

// Exact products and the accumulator, aligned to the largest exponent (of a product: the sum of its factors'), cut off
// after F fraction bits, added exactly and rounded toward zero: docs/budgets.md, "Arithmetic".
template <typename T>
T LegalMachine<T>::matrix_block(T accumulator, const T* a, const T* b, std::size_t n) const {
  constexpr int lowest = -4000;
  const auto exponent = [](double x) { return x == 0 ? lowest : std::ilogb(x); };
  int top = exponent(static_cast<double>(accumulator));
  for (std::size_t i = 0; i < n; ++i) {
    if (a[i] != T(0) && b[i] != T(0)) {
      top = std::max(top, exponent(static_cast<double>(a[i])) + exponent(static_cast<double>(b[i])));
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
  T rounded = static_cast<T>(exact);
  if (std::fabs(static_cast<double>(rounded)) > std::fabs(exact)) {
    rounded = std::nextafter(rounded, T(0));
  }
  return flush(rounded);
}

template <typename T>
T LegalMachine<T>::product(const T* a, const T* b, std::size_t n) const {
  const bool unit = variant_.sum == LegalVariant::Sum::matrix && profile_.product_growth > 1;
  if (!unit || !storable(a, n) || !storable(b, n)) {
    return dot(a, b, n);
  }
  T accumulator = T(0);
  const auto width = static_cast<std::size_t>(variant_.matrix_products);
  for (std::size_t first = 0; first < n; first += width) {
    accumulator = matrix_block(accumulator, a + first, b + first, std::min(width, n - first));
  }
  return accumulator;
}

}  // namespace qkcts
