// SPDX-License-Identifier: Apache-2.0
// Errors of q, k and v under one profile, made when they are first needed, and kept. Contracts that mean the same by q,
// k and v share the object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "conformance/budget_head.hpp"
#include "conformance/budget_operand.hpp"

namespace qkcts {

class VectorBudgets {
 public:
  // `exact` holds the stages of q, k and v that are asked for. It and `c` must outlive the object.
  VectorBudgets(const Case& c, const ExactStages& exact, const Profile& profile, TermSet terms);
  VectorBudgets(const VectorBudgets&) = delete;  // its parts refer to each other
  VectorBudgets& operator=(const VectorBudgets&) = delete;

  const BudgetArithmetic& arithmetic() const { return arithmetic_; }
  const SeenTokens& tokens() const { return tokens_; }
  const ExactStages& exact() const { return exact_; }
  OperandBudget& side(OperandSide side);

  // Until the next call only: a few heads are kept, and all that one batch entry needs.
  const HeadData& head(std::int64_t b, std::int64_t kv_head);

 private:
  const Case& case_;
  const ExactStages& exact_;
  BudgetArithmetic arithmetic_;
  SeenTokens tokens_;
  OperandBudget q_, k_, v_;
  bool has_value_norm_;
  std::size_t most_heads_;
  std::map<std::pair<std::int64_t, std::int64_t>, HeadData> heads_;  // of (b, kv_head)
};

}  // namespace qkcts
