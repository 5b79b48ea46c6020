// SPDX-License-Identifier: Apache-2.0
// Between which numbers P1, P4 and P6 hold an element, and what a row of weights sums to.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "conformance/case.hpp"
#include "vectors/relation.hpp"

namespace qkcts {

struct ElementBounds {
  double low = 0, high = 0;
};

class RelationBounds {
 public:
  // A relation of one case, without a relation_fault(). Both must outlive the object.
  RelationBounds(const Relation& relation, const Case& c);
  // Nothing if the relation says nothing about the element: a row without keys, say.
  std::optional<ElementBounds> of(qkcts_stage stage, std::uint32_t row, std::uint32_t column) const;
  // Of the weights of a row of [B, Hq, Lq].
  std::optional<ElementBounds> of_sum(std::uint32_t row) const;

 private:
  ElementBounds hull(std::uint32_t row, std::uint32_t column) const;
  std::vector<std::uint32_t> averaged_keys(std::uint32_t row) const;  // over which the output is a mean

  const Relation& relation_;
  const Case& case_;
  std::vector<std::vector<std::uint32_t>> keys_;  // averaged_keys() of each row, for sums_and_hull
  std::vector<double> v_;
};

}  // namespace qkcts
