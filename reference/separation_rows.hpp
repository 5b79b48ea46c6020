// SPDX-License-Identifier: Apache-2.0
// Which rows are looked at first where two contracts are to be told apart. Any choice gives a lower bound; a good one
// gives a large bound early. The choice is made by exact comparisons of sums that are formed in one fixed order, so it
// is the same on every machine.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "conformance/budget.hpp"
#include "conformance/case.hpp"

namespace qkcts {

// Sizes of the rows of q, k or v as they come in: the sum of squares, about the mean where the norm takes it away.
// Epsilon and everything else that a norm adds decide in the smallest rows, a cap in the largest.
class RowSizes {
 public:
  RowSizes(const Case& c, Input input, bool centred);
  // Of rows first ... first + count - 1; the first where nothing is known. A row of zeros says nothing: every norm
  // leaves it alone, or has no value.
  std::uint32_t smallest(std::int64_t first, std::int64_t count) const;
  std::uint32_t largest(std::int64_t first, std::int64_t count) const;
  // The four smallest and the two largest of all; none where nothing is known.
  const std::set<std::uint32_t>& extremes() const { return extremes_; }

 private:
  std::vector<double> sizes_;  // empty where the rows come out of a projection
  std::set<std::uint32_t> extremes_;
};

class SeparationRows {
 public:
  // `stored`: the rows that the case stores, per stage; both must outlive the object.
  SeparationRows(const Case& c, const StageRows& stored);

  // The neighbour hides the same keys by another clause, or says something of rows or numbers that the case has not:
  // all values are equal.
  bool are_equal(const Case& neighbour) const;

  // A batch of stored rows for one neighbour, the most telling first; each is small beside the case.
  static constexpr std::size_t batches = 3;
  StageRows batch(const Case& neighbour, std::size_t index) const;

 private:
  const Case& case_;
  const StageRows& stored_;
  RowSizes q_, k_, v_;
  bool is_finite_;
};

}  // namespace qkcts
