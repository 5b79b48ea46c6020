// SPDX-License-Identifier: Apache-2.0
// Errors of the scores: docs/budgets.md, S1 and S3.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "conformance/budget_arithmetic.hpp"
#include "conformance/budget_scale.hpp"
#include "conformance/budget_vector.hpp"
#include "conformance/line_numbers.hpp"

namespace qkcts {

// All keys of one head, eight by eight: a number of each of eight neighbours, element after element, so that a product
// with all of them reads memory from one end to the other.
class KeyPanel {
 public:
  static constexpr std::size_t group = 8;

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
  // Dk and |k| of element d of key i of a group at d * group + i; the last group is whole, too.
  const double* errors(std::size_t of_group) const { return error_.data() + place(0, of_group * group); }
  const double* magnitudes(std::size_t of_group) const { return magnitude_.data() + place(0, of_group * group); }
  double error(std::size_t d, std::size_t key) const { return error_[place(d, key)]; }
  double magnitude(std::size_t d, std::size_t key) const { return magnitude_[place(d, key)]; }

 private:
  std::size_t place(std::size_t d, std::size_t key) const {
    return (key / group * static_cast<std::size_t>(head_dim_) + d) * group + key % group;
  }
  void set_group(std::size_t first, std::span<const VectorError> vectors);

  std::int64_t head_dim_, k_len_;
  LineNumbers error_, magnitude_;
  std::vector<double> common_, size_sum_, size_max_, domain_;
};

// Error of each score first <= key < last of one query row, before cap and bias; infinite where it may overflow.
// `exact` are the exact scores of the row.
void score_errors(const VectorError& q, const KeyPanel& keys, const ScoreScale& scale, std::span<const double> exact,
                  std::int64_t first, std::int64_t last, const BudgetArithmetic& arithmetic, std::span<double> errors);

}  // namespace qkcts
