// SPDX-License-Identifier: Apache-2.0
// Keys and values of one key/value head, as the rows of its query heads need them.
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/budget_operand.hpp"
#include "conformance/budget_score.hpp"
#include "conformance/line_numbers.hpp"

namespace qkcts {

struct HeadData {
  HeadData(std::int64_t head_dim, std::int64_t k_len) : keys(head_dim, k_len) {}
  KeyPanel keys;
  LineNumbers v;                // [Lk + 1][Dv]; the last row is 0, the value of a sink
  std::vector<double> v_error;  // likewise; empty if every value is read exactly
  bool v_computed = false;      // they are what a norm makes of v: known to 2^-50, and v_error may exceed them
  bool v_domain = false;        // one of them may overflow, and no weight of 0 takes that away
};

// Tokens of k and v that some query of the batch entry sees; under `hidden_values: finite` all of them, for nothing
// tells the others apart.
class SeenTokens {
 public:
  explicit SeenTokens(const Case& c);
  bool seen(std::int64_t b, std::int64_t key) const {
    return seen_.empty() || seen_[static_cast<std::size_t>(b * k_len_ + key)];
  }

 private:
  std::int64_t k_len_;
  std::vector<bool> seen_;  // empty: all
};

// `v_norm` are the values after their norm, where the contract has one.
struct ValueNorm {
  OperandBudget* budget = nullptr;
  const std::vector<double>* exact = nullptr;  // the stage v_norm
};

HeadData head_data(const Case& c, std::int64_t b, std::int64_t kv_head, OperandBudget& k, const ValueNorm& v_norm,
                   const SeenTokens& tokens, const BudgetArithmetic& arithmetic);

}  // namespace qkcts
