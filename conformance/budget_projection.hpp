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
  // What one token brings to each of its products with the matrix.
  struct Token {
    std::vector<double> weighted;  // error of the sum per unit of |W|
    std::vector<double> read;      // per unit of the error of W
    std::vector<double> reach;     // magnitude of the largest partial product per unit of |W|
    double constant = 0;           // error that no weight multiplies
    double partial = 1;            // largest product of factors without a weight
    double common = 0;
    bool domain = false;
  };

  const Token& token(std::int64_t b, std::int64_t t);
  Token plain_token(const std::vector<double>& x, const std::vector<double>& error) const;
  Token normed_token(const std::vector<double>& x, const std::vector<double>& error) const;
  // Of a row that passes rounding points between its norm and the matrix.
  Token rounded_token(const std::vector<double>& x, const std::vector<double>& error) const;
  void add_entry(Token& token, double magnitude, double error) const;
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
  double growth_;
  std::vector<std::optional<Token>> tokens_;
};

}  // namespace qkcts
