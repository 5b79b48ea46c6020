// SPDX-License-Identifier: Apache-2.0
// Probabilities, log-sum-exp and output of one row, from the errors of its scores.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "conformance/budget_head.hpp"
#include "conformance/budget_output.hpp"
#include "conformance/budget_rounding.hpp"
#include "conformance/budget_writer.hpp"

namespace qkcts {

// A row of scores: batch, query head, query.
struct RowCoordinates {
  std::int64_t b, h, t;
};

class RowBudget {
 public:
  RowBudget(const Case& c, const ExactStages& exact, const BudgetArithmetic& arithmetic, BudgetWriter& writer);

  // `errors` of what the softmax sees, one per key; of them the visible ones count.
  void put(std::uint32_t row, const RowCoordinates& at, const HeadData& data, const std::vector<std::int64_t>& visible,
           const std::vector<double>& errors);

 private:
  // What the softmax of one row is made of.
  struct Keys {
    std::vector<std::int64_t> visible;
    std::vector<double> scores, errors, probabilities;  // in natural units; a sink comes after the visible keys
    bool uniform = false;
    // Under a point `probs`: the visible probabilities behind it, and their errors as stage and in the output.
    std::vector<double> rounded, rounded_errors, product_errors;
  };

  void put_empty(std::uint32_t row, const HeadData& data);
  void set_keys(std::uint32_t row, const std::vector<double>& errors, Keys& keys) const;
  double add_sink(const RowCoordinates& at, double lse, Keys& keys) const;
  void softmax_stages(std::uint32_t row, const RowCoordinates& at, const HeadData& data, Keys& keys);
  void round_probabilities(std::uint32_t row, Keys& keys, const std::vector<double>& errors) const;
  void put_probabilities(const Keys& keys, const std::vector<double>& errors);
  // Error of the product with v, of rounded or unrounded probabilities; `exact` are the exact sums.
  void set_product_errors(const Keys& keys, const ValueRows& values, std::span<const double> exact, double slots);
  void put_output_element(double before, double z, double error, double hull);
  // In values_.
  void set_values(const RowCoordinates& at, const HeadData& data, const Keys& keys);
  const ValueExtent* extent_of(const RowCoordinates& at, const Keys& keys, const ValueRows& values);
  // Before the point of the output, if it has one.
  std::span<const double> exact_output(std::uint32_t row) const;
  void put_output_domain(std::uint32_t row);
  void put_output(std::uint32_t row, const RowCoordinates& at, const HeadData& data, const Keys& keys, double slots);
  void put_scaled_output(std::uint32_t row, const RowCoordinates& at, const HeadData& data, const Keys& keys,
                         double slots, double lse, double lse_moved);

  const Case& case_;
  const qkcts_contract& terms_;
  const ExactStages& exact_;
  const BudgetArithmetic& arithmetic_;
  BudgetWriter& writer_;
  RoundingPoint probs_, factors_, output_;  // of the stage probs; of the same numbers in the output; of the output
  double unit_, lse_unit_;                  // logarithms of the bases of weights and of the log-sum-exp
  // Of the row at hand, kept for their memory; values of the last row that saw neighbouring keys, and those with a
  // sink.
  Keys keys_;
  std::vector<std::size_t> blocks_;
  std::vector<double> probability_errors_, sizes_;
  SoftmaxNumbers softmax_;
  RowWeights weights_;
  ValueRows values_;
  OutputSums sums_;
  OutputError product_;
  struct SeenValues {
    std::int64_t b, h, first;
    ValueExtent extent;
  };
  std::optional<SeenValues> seen_;
  std::optional<ValueExtent> with_sink_;
};

}  // namespace qkcts
