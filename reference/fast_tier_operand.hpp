// SPDX-License-Identifier: Apache-2.0
// The vectors of q, k or v in double words: entry = scale * (vector entry), with the bounds that their dot products
// need.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "conformance/line_numbers.hpp"
#include "reference/case_values.hpp"
#include "reference/double_word_kernels.hpp"

namespace qkcts {

// An array of double words with their errors, as long as padded(n) at least.
struct WordArray {
  // Keeps what is there: numbers of an earlier use beyond n, and new zeros.
  void reserve(std::size_t n) {
    if (h.size() >= padded(n)) return;
    h.resize(padded(n), 0.0);
    l.resize(padded(n), 0.0);
    error.resize(padded(n), 0.0);
  }
  void clear(std::size_t n) {
    h.assign(padded(n), 0.0);
    l.assign(padded(n), 0.0);
    error.assign(padded(n), 0.0);
  }
  Words words(std::size_t from = 0) { return {h.data() + from, l.data() + from}; }
  ConstWords words(std::size_t from = 0) const { return {h.data() + from, l.data() + from}; }
  LineNumbers h, l, error;
};

// The same, somewhere else, readable as far as padded(n) from where it begins.
struct WordView {
  WordView(const WordArray& words, std::size_t from = 0)  // NOLINT(google-explicit-constructor): as a pointer to const
      : h(words.h.data() + from), l(words.l.data() + from), error(words.error.data() + from) {}
  ConstWords words() const { return {h, l}; }
  const double *h, *l, *error;
};

// The stages of one group, heads one after another; used only where the stage exists.
struct GroupWords {
  WordArray projected, normed, roped;
};

// Every magnitude is 0 or lies in [2^-200, 2^200]: then nothing that is formed from a few of them under- or overflows.
bool is_moderate(const std::vector<double>& values);

class FastProjection;

class FastOperands {
 public:
  FastOperands(const CaseValues& values, Side side, const Kernels& kernels);
  // Rows that are projected: their norm, nothing else.
  FastOperands(const CaseValues& values, const SideValues& source, const Kernels& kernels);
  ~FastOperands();

  // Makes and keeps the vectors of a group. False where it declines: their rows then have infinite errors.
  bool make(std::int64_t group, GroupWords& stages);

  // Of a vector that has been made.
  const double* high(std::int64_t row) const { return high_.get() + static_cast<std::size_t>(row * width_); }
  const double* low(std::int64_t row) const {
    return low_.data() + (has_low_ ? static_cast<std::size_t>(row * width_) : 0);
  }
  bool has_low() const { return has_low_; }  // some low word of some vector is not 0
  struct Row {                               // of v, the scale is 1
    Word scale{1, 0};
    double scale_error = 0;   // relative
    double norm = 1;          // >= 2-norm of the vector
    double delta = HUGE_VAL;  // >= 2-norm of its error; infinite: nothing is known, or nothing has been made yet
  };
  const Row& row(std::int64_t index) const { return rows_[static_cast<std::size_t>(index)]; }

  // Every entry is a multiple of it; 0 if that is not known. Only where neither norm nor rotation stands before.
  double grid() const { return grid_; }
  bool is_plain() const { return is_plain_; }

 private:
  struct Divisor {
    Word inverse;
    double error = 0;  // relative
    bool is_known = false;
  };
  void rotate_group(std::int64_t group, WordArray& x);
  bool normalise(std::int64_t group, WordArray& x, Row& common, WordArray& normed);
  Divisor divisor(Word t, double t_error) const;
  void keep(std::int64_t group, const WordArray& x, const Row& common, bool is_known);

  const CaseValues& values_;
  const SideValues& side_;
  const Kernels& kernels_;
  std::unique_ptr<FastProjection> projection_;  // null where the side is an input
  bool keeps_scale_;
  std::int64_t width_;
  std::size_t numbers_;             // of all vectors, and a padding beyond them
  std::unique_ptr<double[]> high_;  // not set before a vector is made
  std::vector<double> low_;         // zeros of one vector until one has a low word that is not 0
  std::vector<Row> rows_;
  std::vector<double> factor_high_, factor_low_, offset_;  // of all heads, [H * D]; empty: none
  bool has_low_ = false, is_plain_ = false;
  double grid_ = 0;
  LineNumbers pair_[6], cos_, sin_;  // scratch of rotate_group
  LineNumbers group_factor_[2], group_offset_;
  WordArray x_;       // scratch of make
  LineNumbers head_;  // and of keep
};

}  // namespace qkcts
