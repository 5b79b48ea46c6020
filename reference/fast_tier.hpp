// SPDX-License-Identifier: Apache-2.0
// The first tier: rows of attention in double words with a bound of its error per element. What the bound proves to
// round alike everywhere is recorded, as the refinement loop would; the rest is left to it.
//
// Stored bits do not depend on the tier: a proven rounding is the only one there is. Nor do the other values that are
// recorded here (binary64 values of rows that are not stored, row statistics): they are RN64 of the exact value, and so
// are those of the refinement loop, except where its enclosure of 128 bits straddles a midpoint of binary64; it is
// narrower than the bounds here by more than 2^15, and what they decide stands outside of them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "reference/attention.hpp"
#include "reference/case_values.hpp"
#include "reference/fast_tier_vectors.hpp"
#include "reference/recorder.hpp"
#include "reference/row_places.hpp"

namespace qkcts {

class FastTier {
 public:
  // Nothing if the contract has a clause of what comes after q, k and v, or the inputs a magnitude, that this tier does
  // not cover. `vectors` may be those of another contract that means the same by them; what is passed must outlive the
  // object.
  static std::unique_ptr<FastTier> create(const CaseValues& values, RowPlaces& rows, const FastVectors& vectors,
                                          ReferenceResult& result);
  virtual ~FastTier() = default;

  // Once `rows` hold others, and the vectors that they use have been made.
  virtual void begin_block() = 0;

  // settle_row() records what the contract fixes at hidden keys, too; otherwise that is left to the caller, before.
  virtual bool fixes_hidden_keys(std::size_t row) const = 0;

  // Records the stages of a row of attention that is held; gives the elements that are still open, in the order of the
  // stages, or nothing where it declines and records nothing. The row statistics are open as one element of
  // `statistics_stage`, last of all.
  virtual std::optional<std::vector<ElementPlace>> settle_row(std::size_t row) = 0;
};

}  // namespace qkcts
