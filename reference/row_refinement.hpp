// SPDX-License-Identifier: Apache-2.0
// The refinement loop of rows of attention, from vectors that are settled.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "reference/declared_row.hpp"
#include "reference/element_loop.hpp"
#include "reference/fast_tier.hpp"
#include "reference/fixed_values.hpp"
#include "reference/vector_refinement.hpp"

namespace qkcts {

class RowRefinement {
 public:
  // `vectors` may be those of another contract, where have_same_vectors(). All must outlive the object.
  RowRefinement(const Case& c, const StageRows& stored, const RefinementLimits& limits, VectorRefinement& vectors);
  RowRefinement(const RowRefinement&) = delete;  // its parts refer to each other
  RowRefinement& operator=(const RowRefinement&) = delete;

  // Rows of [B,Hq,Lq], ascending. `exact` of the result holds them then, and no others.
  void evaluate(std::span<const std::uint32_t> rows);

  // Stored rows that have not been evaluated may be missing, until complete().
  const ReferenceResult& result() const { return result_; }
  void complete() { recorder_.begin_all(); }
  ReferenceResult take_result() {
    complete();
    return std::move(result_);
  }
  int highest_bits() const { return levels_.highest_bits(); }

 private:
  void settle(std::size_t row);
  OpenElements elements(std::size_t row) const;
  static KeySet keys_for(const RowPlace& place, const OpenElements& open);
  template <unsigned Digits>
  bool set_statistics(std::size_t row, const SoftmaxRow<Digits>& softmax, bool is_last);
  template <std::size_t L>
  void refine(std::size_t row, OpenElements open);

  template <class Sequence>
  struct PerLevelRows;
  template <std::size_t... L>
  struct PerLevelRows<std::index_sequence<L...>> {
    using Rows = std::tuple<RowEnclosures<level_digits[L]>...>;
  };

  RefinementLimits limits_;
  VectorRefinement& vectors_;
  ReferenceResult result_;
  std::optional<CaseValues> own_values_;  // where the vectors are those of another contract
  CaseValues& values_;
  RowPlaces rows_;
  ExactCases exact_;
  ExactSoftmax softmax_;
  Recorder recorder_;
  FixedValues fixed_;
  ElementLoop loop_;
  Levels levels_;
  typename PerLevelRows<std::make_index_sequence<level_count>>::Rows found_;
  std::optional<DeclaredRows> declared_;  // where the contract rounds
  std::unique_ptr<FastTier> fast_;
};

}  // namespace qkcts
