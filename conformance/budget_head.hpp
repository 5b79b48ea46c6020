// SPDX-License-Identifier: Apache-2.0
// Keys and values of one key/value head, as the rows of its query heads need them.
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/budget_operand.hpp"
#include "conformance/budget_score.hpp"

namespace qkcts {

struct HeadData {
  HeadData(std::int64_t head_dim, std::int64_t k_len) : keys(head_dim, k_len) {}
  KeyPanel keys;
  std::vector<double> v;        // [Lk + 1][Dv]; the last row is 0, the value of a sink
  std::vector<double> v_error;  // likewise; empty if every value is read exactly
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

HeadData head_data(const Case& c, std::int64_t b, std::int64_t kv_head, OperandBudget& k, const SeenTokens& tokens,
                   const BudgetArithmetic& arithmetic);

}  // namespace qkcts
