// SPDX-License-Identifier: Apache-2.0
// Errors of the rows of q or k that a matrix makes: docs/budgets.md, W1 to W3.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "conformance/budget_arithmetic.hpp"
#include "conformance/budget_norm_tensor.hpp"
#include "conformance/budget_rounded_norm.hpp"
#include "conformance/budget_vector.hpp"

namespace qkcts {

class ProjectionBudget {
 public:
  // Which inputs are projected; `exact` are the projected numbers, [B, heads, length, D].
  struct Side {
    Input rows, weight, weight_bias, gain, bias;
    const qkcts_norm& norm;
    const qkcts_input_rounding& points;
    std::int64_t heads, length;
  };
  ProjectionBudget(const Case& c, const Side& side, const std::vector<double>& exact,
                   const BudgetArithmetic& arithmetic);

  // Row (batch b, head h, token t). The factor of the norm before the matrix is common to the vector where that norm
  // and the projection have no bias: it multiplies the sum, not its terms.
  VectorError row(std::int64_t b, std::int64_t h, std::int64_t t);

 private:
  // An entry of the row and its size. Factors of the norm may be multiplied into it, into the matrix, or come after the
  // sum: its least and largest size by then, what the matrix is multiplied by at least, and the most that comes after.
  struct AlignedEntry {
    double size, least, most, matrix, outside;
  };
  // What one token brings to each of its products with the matrix.
  struct Token {
    std::vector<double> weighted;       // error of the sum per unit of |W|
    std::vector<double> read;           // per unit of the error of W
    std::vector<double> reach;          // magnitude of the largest partial product per unit of |W|
    std::vector<AlignedEntry> aligned;  // as a unit reads them: M2
    double constant = 0;                // error that no weight multiplies
    double partial = 1;                 // largest product of factors without a weight
    double common = 0;
    bool domain = false;
  };

  const Token& token(std::int64_t b, std::int64_t t);
  Token plain_token(const std::vector<double>& x, const std::vector<double>& error) const;
  Token normed_token(const std::vector<double>& x, const std::vector<double>& error) const;
  // Of a row that passes rounding points between its norm and the matrix.
  Token rounded_token(const std::vector<double>& x, const std::vector<double>& error) const;
  void add_entry(Token& token, double magnitude, double error) const;
  // By how much products with subnormal factors exceed the growth of the sums, where they do (M2).
  void add_alignment(const Token& token, std::int64_t head, std::vector<double>& errors) const;
  bool with_bias() const { return !weight_bias_.empty(); }

  const Case& case_;
  const BudgetArithmetic& arithmetic_;
  Side side_;
  const std::vector<double>& exact_;
  NormTensors tensors_;
  NormPoints inner_points_;
  RoundingPoint norm_point_;
  std::int64_t width_, head_dim_;
  std::vector<double> rows_, weight_, weight_error_,
      weight_bias_;  // weight_ holds magnitudes; errors only if any is not 0
  double largest_weight_ = 0;
  double sum_growth_;  // of a sum of operands as they are read
  double growth_;
  std::vector<std::optional<Token>> tokens_;
};

}  // namespace qkcts
