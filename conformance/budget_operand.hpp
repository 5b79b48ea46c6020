// SPDX-License-Identifier: Apache-2.0
// Errors of the rows of q, k or v on their way through projection, norm and rotation.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "conformance/budget_angle.hpp"
#include "conformance/budget_arithmetic.hpp"
#include "conformance/budget_norm.hpp"
#include "conformance/budget_norm_tensor.hpp"
#include "conformance/budget_projection.hpp"
#include "conformance/budget_range.hpp"
#include "conformance/budget_rounded_norm.hpp"
#include "conformance/budget_vector.hpp"

namespace qkcts {

enum class OperandSide : std::uint8_t { q, k, v };

// One row after each of its stages (`norm`: after norm, factor and clamps).
struct OperandRow {
  std::optional<VectorError> projection;
  std::optional<VectorError> norm;
  std::optional<VectorError> rope;
  VectorError input;  // where it has no stage
  std::optional<VectorError> OperandRow::*last_stage = nullptr;

  // What the scores multiply: the last of them, or the input.
  VectorError take_product() { return last_stage != nullptr ? std::move(*(this->*last_stage)) : std::move(input); }
};

class OperandBudget {
 public:
  OperandBudget(const Case& c, const ExactStages& exact, OperandSide side, const BudgetArithmetic& arithmetic);

  // Row (batch b, head h, token t). Statistics of full-width norms are kept, so any order of rows is cheap.
  OperandRow row(std::int64_t b, std::int64_t h, std::int64_t t);
  // What the scores multiply, of a row that has been made and kept, which is handed out once, or made now.
  VectorError product(std::int64_t b, std::int64_t h, std::int64_t t);
  void keep(std::int64_t b, std::int64_t h, std::int64_t t, VectorError product);

  std::int64_t heads() const { return heads_; }
  std::int64_t length() const { return length_; }

 private:
  // As it enters the side: read, or made by the projection.
  VectorError first_row(std::int64_t b, std::int64_t h, std::int64_t t);
  VectorError rotated(VectorError vector, std::int64_t b, std::int64_t h, std::int64_t t) const;
  TableEntry table_entry(std::int64_t h, std::int64_t position, std::int64_t pair) const;
  VectorError normalised(const VectorError& vector, std::int64_t b, std::int64_t h, std::int64_t t);
  // The same where the norm passes points before its end.
  VectorError normalised_by_points(const VectorError& vector, const std::vector<double>& x, std::int64_t h,
                                   std::int64_t row, const NormStatistics& shared) const;
  VectorError unnormalised(const VectorError& vector, std::int64_t row);
  // Of the row that `vector` is, and x its exact numbers, on its way into the norm; of all heads of the token for a
  // full-width norm.
  const NormStatistics& statistics(const VectorError& vector, const std::vector<double>& x, std::int64_t b,
                                   std::int64_t h, std::int64_t t);
  const ParameterColumns& columns(std::int64_t h);
  NormStatistics full_width_statistics(std::int64_t b, std::int64_t t);
  std::int64_t row_index(std::int64_t b, std::int64_t h, std::int64_t t) const;
  bool rotates_first() const { return order_ == QKCTS_ROPE_THEN_NORM; }
  // What the norm acts on: exact numbers, known to `source_accuracy`, and those of a row after the clamp before it.
  std::vector<double> source_row(std::int64_t row);
  double source_accuracy() const;
  std::vector<double> norm_source(std::int64_t row);
  void settle_source(VectorError& vector, std::int64_t row);
  // Of the input, the last one that was asked for being kept.
  const std::vector<double>& input_row(std::int64_t row);
  // A whole row of a stage passes the point of that stage.
  void round_stage(VectorError& vector, qkcts_stage stage, std::int64_t row, const RoundingPoint& point) const;

  const Case& case_;
  const ExactStages& exact_;
  const BudgetArithmetic& arithmetic_;
  const qkcts_norm& norm_;
  const qkcts_rope& rope_;
  std::uint32_t order_;  // of the rotation; v never turns
  bool transforms_;
  Clamp clamp_before_, clamp_after_;
  ConstantFactor factor_;
  RoundingPoint projection_point_, norm_point_, product_point_, rope_point_;
  NormPoints inner_points_;
  NormTensors tensors_;
  ParameterColumns columns_;  // of one head
  std::int64_t columns_of_ = -1;
  Input position_input_;
  qkcts_stage projection_stage_, norm_stage_, rope_stage_;
  std::int64_t heads_, length_, head_dim_;
  const Tensor* input_ = nullptr;  // none under a projection
  std::vector<double> input_row_;
  std::int64_t input_row_of_ = -1;
  std::vector<double> cos_, sin_;
  std::int64_t head_table_ = 0;  // numbers of the table of one head; 0: all heads share it
  std::optional<ProjectionBudget> projection_;
  std::optional<AngleBudget> angles_;  // where the runtime computes them
  std::vector<std::optional<NormStatistics>> statistics_;
  std::unordered_map<std::int64_t, VectorError> kept_;
};

}  // namespace qkcts
