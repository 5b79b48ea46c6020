// SPDX-License-Identifier: Apache-2.0
// Loops over arrays of double words, compiled for several instruction sets. Every set gives the same bits: each element
// is computed by the same operations in the same order, wherever it stands.
//
// Arrays are as long as padded(n), the entries beyond n being zeros or any finite numbers; `n` counts the entries that
// matter. u = 2^-53; errors are absolute upper bounds unless called relative. Derivations stand in the files included
// by double_word_kernels.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "conformance/format.hpp"
#include "reference/double_word_constants.hpp"

namespace qkcts {

struct Word {
  double h = 0, l = 0;
};
struct Words {
  double *h, *l;
};
struct ConstWords {
  const double *h, *l;
  ConstWords(const double* high, const double* low) : h(high), l(low) {}
  ConstWords(Words w) : h(w.h), l(w.l) {}  // NOLINT(google-explicit-constructor): as a pointer to const
};

constexpr std::size_t padding = 32;  // lanes that the widest loop takes at once
constexpr std::size_t padded(std::size_t n) {
  return (n + padding - 1) / padding * padding;
}

// sum over i < terms of x[i] * y[row(i)][column], row(i) = rows[i], or i if rows is null.
struct DotOperands {
  const double *x_high, *x_low;  // x_low null: 0
  std::size_t terms;
  const std::uint32_t* rows;
  const double *y_high, *y_low;  // y_low null: 0
  std::size_t stride;            // from row to row of y
};

// Coefficients of the bound of double_word_dot.hpp, of the anchor and of A.
struct DotSize {
  DotSize(std::size_t terms, int low_words);
  double grid_error, sum_error;
};

struct NormedKeys {  // per key: k^ = scale (vector + error), ||vector|| <= norm, ||error|| <= delta
  const double *scale_high, *scale_low, *scale_error;  // scale_error is relative
  const double *norm, *delta;
};
struct ScoreTerms {
  Word factor;          // tau times the scale of q^
  double factor_error;  // relative
  double norm, delta;   // of the vector of q^
  DotSize size;
  bool is_exact_product;  // all scales are 1, factor is a binary64 number, and nothing before them has an error
  double grid;            // in that case: every product of entries is a multiple of it for every key; else 0
};

struct CapOperands {
  double cap = 0;                                    // 0: none
  Word inverse;                                      // 1/cap within 11 u^2
  const double *before = nullptr, *after = nullptr;  // biases, null: none
};

struct WeightSums {
  Word rest;         // sum of the weights but that of the largest key, which is 1
  Word weighted;     // sum of weight * (maximum - score)
  double error = 0;  // relative, of every weight, and of their sum but for the additions
};

struct RowExtremes {
  std::size_t largest = 0, farthest = 0;  // first places of the largest word and of the largest magnitude
  double error = 0;                       // the largest one; infinite where one is no number
};

// Where the roundings of one row of a stage go; expected is null if the row is not stored.
struct RoundedRow {
  double* exact;
  std::uint64_t* expected;
  double* hi;
  std::int16_t* lo;
};

struct Kernels {
  std::string_view name;

  // Entries beyond n are zeros here. Errors: 3.01 (n + 8) u^2 of the sum of the magnitudes; squares add 5 u^2 of
  // theirs.
  Word (*sum)(const double* x, std::size_t n);
  Word (*sum_of_squares)(ConstWords x, std::size_t n);
  double (*norm_bound)(const double* x, std::size_t n);  // >= the 2-norm

  // In place, with the errors of the entries.
  void (*subtract)(Words x, double* error, std::size_t n, Word mean, double mean_error);
  void (*multiply_each)(Words x, double* error, std::size_t n, ConstWords factors);
  void (*add_each)(Words x, double* error, std::size_t n, const double* y);
  void (*rotate)(Words a, double* a_error, Words b, double* b_error, const double* cos, const double* sin,
                 std::size_t n);
  // result = factor * x.
  void (*scale)(ConstWords x, const double* x_error, std::size_t n, Word factor, double relative_error, Words result,
                double* error);

  void (*anchors)(const double* norms, std::size_t n, double norm, double* anchors);
  void (*dot)(const DotOperands& operands, std::size_t columns, const double* anchors, Words result);
  void (*scores)(ConstWords dots, const double* anchors, std::size_t n, const ScoreTerms& terms, const NormedKeys& keys,
                 Words scores, double* error);
  void (*cap)(ConstWords scores, const double* score_error, std::size_t n, const CapOperands& terms, Words result,
              double* error);
  RowExtremes (*extremes)(ConstWords x, const double* error, std::size_t n);
  WeightSums (*weights)(ConstWords scores, const double* error, std::size_t n, std::size_t largest, Words weights,
                        double* x, double* relative_error);
  void (*probabilities)(ConstWords weights, const double* weight_error, std::size_t n, Word inverse_sum,
                        double sum_error, Words probs, double* error);
  void (*outputs)(ConstWords sums, const double* anchors, const double* largest, std::size_t n, const DotSize& size,
                  double weight_sum, double weight_error, Word inverse_sum, double sum_error, Words outputs,
                  double* error);
  void (*log_one_plus)(ConstWords w, const double* guess, std::size_t n, Words result, double* error);

  void (*exponentials)(ConstWords x, std::size_t n, Words result, double* relative_error);
  void (*tangents)(ConstWords x, std::size_t n, Words result, double* error);

  // Rounds z +- error as a corpus stores it. undecided[i] = 1 where the ends differ; returns how many.
  std::size_t (*round)(ConstWords z, const double* error, std::size_t n, Format format, const RoundedRow& row,
                       std::uint8_t* undecided);
};

// Those that this machine can run, the fastest first; never empty.
std::span<const Kernels> all_kernels();

}  // namespace qkcts
