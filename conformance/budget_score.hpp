// SPDX-License-Identifier: Apache-2.0
// Errors of the scores, the soft cap and the additive bias: docs/budgets.md, S1 to S3 and C1 to C5.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "conformance/budget_arithmetic.hpp"
#include "conformance/budget_vector.hpp"
#include "conformance/case.hpp"

namespace qkcts {

// The constant by which <q, k> is multiplied, and its relative error in the worst form that it may take.
struct ScoreScale {
  double tau = 1;       // |scale / T|
  double relative = 0;  // everything but the growth of the dot product
};
ScoreScale scale_terms(const Case& c, const BudgetArithmetic& arithmetic);

// All keys of one head, transposed so that the loop over keys is the inner one.
class KeyPanel {
 public:
  KeyPanel(std::int64_t head_dim, std::int64_t k_len);
  void set(std::int64_t key, const VectorError& vector);

  std::int64_t head_dim() const { return head_dim_; }
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

// Cap and bias of one score.
struct CapTerms {
  double cap = 0;        // 0: none
  double cap_error = 0;  // relative error of the constant
  double quotient = 0;   // relative error of s / c
  bool bias_before = false, bias_after = false;
};
CapTerms cap_terms(const Case& c, const BudgetArithmetic& arithmetic);

struct CappedError {
  double error = 0;          // as the stage is observed
  double softmax_error = 0;  // as the softmax sees it: a base-2 kernel may scale score and bias separately
};
CappedError capped_error(const CapTerms& terms, double score, double score_error, double bias, double bias_error,
                         double exact_capped, const BudgetArithmetic& arithmetic);

}  // namespace qkcts
