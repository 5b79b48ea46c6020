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
  void set(std::int64_t key, const VectorError& vector);

  std::int64_t head_dim() const { return head_dim_; }
  std::int64_t k_len() const { return k_len_; }
  bool domain(std::int64_t key) const { return domain_[static_cast<std::size_t>(key)] != 0; }
  double common(std::int64_t key) const { return common_[static_cast<std::size_t>(key)]; }
  double size_sum(std::int64_t key) const { return size_sum_[static_cast<std::size_t>(key)]; }
  double size_max(std::int64_t key) const { return size_max_[static_cast<std::size_t>(key)]; }
  const double* size(std::int64_t d) const { return size_.data() + d * k_len_; }
  const double* error(std::int64_t d) const { return error_.data() + d * k_len_; }
  const double* magnitude(std::int64_t d) const { return magnitude_.data() + d * k_len_; }

 private:
  std::int64_t head_dim_, k_len_;
  std::vector<double> size_, error_, magnitude_;  // |k| + Dk, Dk, |k|: [D][Lk]
  std::vector<double> common_, size_sum_, size_max_;
  std::vector<unsigned char> domain_;
};

// Error of each score first <= key < last of one query row, before cap and bias; infinite where it may overflow.
// `exact` are the exact scores of the row.
void score_errors(const VectorError& q, const KeyPanel& keys, const ScoreScale& scale, std::span<const double> exact,
                  std::int64_t first, std::int64_t last, const BudgetArithmetic& arithmetic, std::span<double> errors);

}  // namespace qkcts
