// SPDX-License-Identifier: Apache-2.0
// Errors of the rows of q or k on their way through norm and rotation.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "conformance/budget_angle.hpp"
#include "conformance/budget_arithmetic.hpp"
#include "conformance/budget_norm.hpp"
#include "conformance/budget_range.hpp"
#include "conformance/budget_vector.hpp"

namespace qkcts {

enum class OperandSide : std::uint8_t { q, k };

// One row after each of its stages (`norm`: after norm, factor and clamps); `product` is what the scores multiply (the
// last of them, or the input).
struct OperandRow {
  std::optional<VectorError> norm;
  std::optional<VectorError> rope;
  VectorError product;
};

class OperandBudget {
 public:
  OperandBudget(const Case& c, const ExactStages& exact, OperandSide side, const BudgetArithmetic& arithmetic);

  // Row (batch b, head h, token t). Statistics of full-width norms are kept, so any order of rows is cheap.
  OperandRow row(std::int64_t b, std::int64_t h, std::int64_t t);

  std::int64_t heads() const { return heads_; }
  std::int64_t length() const { return length_; }

 private:
  VectorError input_row(std::int64_t row) const;
  VectorError rotated(VectorError vector, std::int64_t b, std::int64_t row, std::int64_t t) const;
  TableEntry table_entry(std::int64_t position, std::int64_t pair) const;
  VectorError normalised(const VectorError& vector, std::int64_t b, std::int64_t h, std::int64_t t);
  VectorError unnormalised(const VectorError& vector, std::int64_t row) const;
  const NormStatistics& statistics(std::int64_t b, std::int64_t h, std::int64_t t);
  NormParameters parameters(std::int64_t h, std::int64_t d) const;
  std::int64_t row_index(std::int64_t b, std::int64_t h, std::int64_t t) const;
  bool rotates_first() const;
  // What the norm acts on: exact numbers of a row after the clamp before it, and their errors.
  std::vector<double> norm_source(std::int64_t row) const;
  void clamp_source(VectorError& vector, std::int64_t row) const;

  const Case& case_;
  const ExactStages& exact_;
  const BudgetArithmetic& arithmetic_;
  const qkcts_norm& norm_;
  const qkcts_rope& rope_;
  bool transforms_;
  Clamp clamp_before_, clamp_after_;
  ConstantFactor factor_;
  Input gain_input_, bias_input_, position_input_;
  qkcts_stage norm_stage_, rope_stage_;
  std::int64_t heads_, length_, head_dim_;
  std::vector<double> input_, gain_, bias_, cos_, sin_;
  std::optional<AngleBudget> angles_;  // where the runtime computes them
  std::vector<std::optional<NormStatistics>> statistics_;
};

}  // namespace qkcts
