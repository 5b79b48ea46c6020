// SPDX-License-Identifier: Apache-2.0
// Errors of the scores: docs/budgets.md, S1 and S3.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "conformance/budget_arithmetic.hpp"
#include "conformance/budget_scale.hpp"
#include "conformance/budget_vector.hpp"

namespace qkcts {

// All keys of one head, transposed so that the loop over keys is the inner one.
class KeyPanel {
 public:
  KeyPanel(std::int64_t head_dim, std::int64_t k_len);
  void set(std::int64_t key, const VectorError& vector) { set(key, std::span(&vector, 1)); }
  // Keys `first` on.
  void set(std::int64_t first, std::span<const VectorError> vectors);

  std::int64_t head_dim() const { return head_dim_; }
  std::int64_t k_len() const { return k_len_; }
  // Of every key: 1 where it is not judged, else 0; the common factor; sum and largest of |k| + Dk.
  const double* domain() const { return domain_.data(); }
  const double* common() const { return common_.data(); }
  const double* size_sum() const { return size_sum_.data(); }
  const double* size_max() const { return size_max_.data(); }
  // Of element d of every key: Dk and |k|; from one element to the next it is stride() numbers. Eight may be read from
  // any key on.
  const double* error(std::int64_t d) const { return error_[static_cast<std::size_t>(d) * lines_].numbers; }
  const double* magnitude(std::int64_t d) const { return magnitude_[static_cast<std::size_t>(d) * lines_].numbers; }
  std::size_t stride() const { return 8 * lines_; }

 private:
  struct alignas(64) Line {
    double numbers[8];
  };
  void set_group(std::size_t first, std::span<const VectorError> vectors);

  std::int64_t head_dim_, k_len_;
  std::size_t lines_;                    // of an element
  std::vector<Line> error_, magnitude_;  // [D][Lk], in whole lines of a cache
  std::vector<double> common_, size_sum_, size_max_, domain_;
};

// Error of each score first <= key < last of one query row, before cap and bias; infinite where it may overflow.
// `exact` are the exact scores of the row.
void score_errors(const VectorError& q, const KeyPanel& keys, const ScoreScale& scale, std::span<const double> exact,
                  std::int64_t first, std::int64_t last, const BudgetArithmetic& arithmetic, std::span<double> errors);

}  // namespace qkcts
