// SPDX-License-Identifier: Apache-2.0
// Where an element of the first case of a pair stands in the second, and what became of it there.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "vectors/relation.hpp"

namespace qkcts {

// value of the second = (negated ? -1 : 1) * 2^exponent * value of the first + shift
struct ElementImage {
  std::uint32_t row = 0, column = 0;
  int exponent = 0;
  bool negated = false;
  double shift = 0;
};

class RelationImage {
 public:
  // A pair without a relation_fault(); the contracts must outlive the object.
  RelationImage(const Relation& relation, const RelationCase& first, const RelationCase& second);
  // Nothing if the relation says nothing about the element.
  std::optional<ElementImage> of(qkcts_stage stage, std::uint32_t row, std::uint32_t column) const;

 private:
  std::optional<std::uint32_t> key_row(std::uint32_t row) const;
  std::optional<std::uint32_t> query_row(std::uint32_t row) const;
  void transform(qkcts_stage stage, ElementImage& image) const;

  const Relation& relation_;
  const RelationCase first_, second_;
  std::vector<std::uint32_t> place_of_key_;   // key_permutation: inverse
  std::vector<std::uint32_t> query_head_of_;  // repeated_heads: the first query head that reads a key head
};

}  // namespace qkcts
