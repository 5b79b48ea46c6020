// SPDX-License-Identifier: Apache-2.0
// The first tier: every stage in double words with a bound of its error per element. What the bound proves to round
// alike everywhere is recorded, as the refinement loop would; the rest is left to it.
//
// Stored bits do not depend on the tier: a proven rounding is the only one there is. Nor do the other values that are
// recorded here (binary64 values of rows that are not stored, row statistics): they are RN64 of the exact value, and so
// are those of the refinement loop, except where its enclosure of 128 bits straddles a midpoint of binary64; it is
// narrower than the bounds here by more than 2^15, and what they decide stands outside of them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "reference/attention.hpp"
#include "reference/case_values.hpp"
#include "reference/double_word_kernels.hpp"
#include "reference/recorder.hpp"

namespace qkcts {

class FastTier {
 public:
  // With the first of `kernels`. Nothing if there is none, or if the contract has a clause, or the inputs a magnitude,
  // that this tier does not cover. `rows` are all_rows() of the case; what is passed must outlive the object.
  static std::unique_ptr<FastTier> create(const CaseValues& values, const std::vector<RowPlace>& rows,
                                          ReferenceResult& result, std::span<const Kernels> kernels);
  virtual ~FastTier() = default;

  // settle_row() records what the contract fixes at hidden keys, too; otherwise that is left to the caller, before.
  virtual bool fixes_hidden_keys(std::size_t row) const = 0;

  // Records the stages of a group, or of a row of attention; gives the elements that are still open, in the order of
  // the stages, or nothing where it declines and records nothing. The row statistics are open as one element of
  // `statistics_stage`, last of all.
  virtual std::optional<std::vector<ElementPlace>> settle_group(Side side, std::int64_t group) = 0;
  virtual std::optional<std::vector<ElementPlace>> settle_row(std::size_t row) = 0;
};

}  // namespace qkcts
