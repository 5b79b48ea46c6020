// SPDX-License-Identifier: Apache-2.0
// RMS norm with gain, soft-cap, causal softmax and output in 128 bits, operation by operation: what a careful person
// writes first. With MPFR nothing is proven; with MPFI every number is enclosed. For the benchmark only.
#pragma once

#include <boost/multiprecision/mpfi.hpp>

#include <cstddef>
#include <vector>

#include "reference/case_values.hpp"
#include "reference/real.hpp"

namespace qkcts {

// One rounding per operation.
struct PlainMpfr {
  struct Number : Real {
    Number() : Real(128, 0.0) {}
  };
  static void set(Number& r, double x) { mpfr_set_d(r.get(), x, MPFR_RNDN); }
  static void add(Number& r, const Number& x) { mpfr_add(r.get(), r.get(), x.get(), MPFR_RNDN); }
  static void add(Number& r, double x) { mpfr_add_d(r.get(), r.get(), x, MPFR_RNDN); }
  static void multiply(Number& r, const Number& x, const Number& y) { mpfr_mul(r.get(), x.get(), y.get(), MPFR_RNDN); }
  static void multiply(Number& r, const Number& x, double y) { mpfr_mul_d(r.get(), x.get(), y, MPFR_RNDN); }
  static void divide(Number& r, const Number& x) { mpfr_div(r.get(), r.get(), x.get(), MPFR_RNDN); }
  static void divide(Number& r, double x) { mpfr_div_d(r.get(), r.get(), x, MPFR_RNDN); }
  static void root(Number& r) { mpfr_sqrt(r.get(), r.get(), MPFR_RNDN); }
  static void exp(Number& r) { mpfr_exp(r.get(), r.get(), MPFR_RNDN); }
  static void tanh(Number& r) { mpfr_tanh(r.get(), r.get(), MPFR_RNDN); }
  static double low(const Number& r) { return mpfr_get_d(r.get(), MPFR_RNDN); }
};

// An enclosure per number, rounded outward.
struct PlainMpfi {
  using Number = boost::multiprecision::number<boost::multiprecision::mpfi_float_backend<level_digits[0]>,
                                               boost::multiprecision::et_off>;
  static mpfi_ptr raw(Number& x) { return x.backend().data(); }
  static mpfi_srcptr raw(const Number& x) { return x.backend().data(); }
  static void set(Number& r, double x) { mpfi_set_d(raw(r), x); }
  static void add(Number& r, const Number& x) { mpfi_add(raw(r), raw(r), raw(x)); }
  static void add(Number& r, double x) { mpfi_add_d(raw(r), raw(r), x); }
  static void multiply(Number& r, const Number& x, const Number& y) { mpfi_mul(raw(r), raw(x), raw(y)); }
  static void multiply(Number& r, const Number& x, double y) { mpfi_mul_d(raw(r), raw(x), y); }
  static void divide(Number& r, const Number& x) { mpfi_div(raw(r), raw(r), raw(x)); }
  static void divide(Number& r, double x) { mpfi_div_d(raw(r), raw(r), x); }
  static void root(Number& r) { mpfi_sqrt(raw(r), raw(r)); }
  static void exp(Number& r) { mpfi_exp(raw(r), raw(r)); }
  static void tanh(Number& r) { mpfi_tanh(raw(r), raw(r)); }
  static double low(const Number& r) { return mpfr_get_d(&raw(r)->left, MPFR_RNDN); }
};

template <class Plain>
std::vector<typename Plain::Number> plain_norms(const SideValues& side) {
  std::vector<typename Plain::Number> result(static_cast<std::size_t>(side.batch * side.heads * side.length) *
                                             static_cast<std::size_t>(side.head_dim));
  typename Plain::Number sum, term;
  std::size_t at = 0;
  for (std::int64_t row = 0; row < side.batch * side.heads * side.length; ++row) {
    const std::span<const double> x = side.row(row);
    Plain::set(sum, 0);
    for (const double entry : x) {
      Plain::set(term, entry);
      Plain::multiply(term, term, entry);
      Plain::add(sum, term);
    }
    Plain::divide(sum, static_cast<double>(x.size()));
    Plain::add(sum, side.norm.eps);
    Plain::root(sum);
    for (std::size_t lane = 0; lane < x.size(); ++lane) {
      Plain::set(result[at], x[lane]);
      Plain::multiply(result[at], result[at], side.gain[lane]);
      Plain::divide(result[at++], sum);
    }
  }
  return result;
}

// The sum of all outputs, so that none is left out.
template <class Plain>
double plain_attention(const Case& c, double cap) {
  const CaseValues values(c);
  const auto q = plain_norms<Plain>(values.q), k = plain_norms<Plain>(values.k);
  const auto width = static_cast<std::size_t>(c.shape.head_dim);
  const auto length = static_cast<std::size_t>(c.shape.k_len);
  std::vector<typename Plain::Number> weights(length);
  typename Plain::Number root, product, total, sum;
  Plain::set(root, static_cast<double>(width));
  Plain::root(root);
  double check = 0;
  for (std::size_t h = 0; h < static_cast<std::size_t>(c.shape.q_heads); ++h)
    for (std::size_t i = 0; i < length; ++i) {
      Plain::set(total, 0);
      for (std::size_t j = 0; j <= i; ++j) {
        Plain::set(weights[j], 0);
        for (std::size_t d = 0; d < width; ++d) {
          Plain::multiply(product, q[(h * length + i) * width + d], k[(h * length + j) * width + d]);
          Plain::add(weights[j], product);
        }
        Plain::divide(weights[j], root);
        Plain::divide(weights[j], cap);
        Plain::tanh(weights[j]);
        Plain::multiply(weights[j], weights[j], cap);
        Plain::exp(weights[j]);
        Plain::add(total, weights[j]);
      }
      for (std::size_t d = 0; d < width; ++d) {
        Plain::set(sum, 0);
        for (std::size_t j = 0; j <= i; ++j) {
          Plain::multiply(product, weights[j], values.v.x[(h * length + j) * width + d]);
          Plain::add(sum, product);
        }
        Plain::divide(sum, total);
        check += Plain::low(sum);
      }
    }
  return check;
}

}  // namespace qkcts
