// SPDX-License-Identifier: Apache-2.0
// P12: clauses that a kernel may accept and ignore.
#include "vectors/relation_clause.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "vectors/relation_recipe.hpp"

namespace qkcts {
namespace {

// Fields that kernels have been seen to ignore; of each, one value that drops the clause or moves it far.
constexpr std::array ignored_fields = {
    std::string_view("norm.eps="),          std::string_view("q_norm.eps="),   std::string_view("k_norm.eps="),
    std::string_view("score.softcap="),     std::string_view("mask.causal="),  std::string_view("mask.window"),
    std::string_view("score.temperature="), std::string_view("mask.chunk="),   std::string_view("softmax.sink="),
    std::string_view("norm.clip_before="),  std::string_view("heads.mapping=")};

bool starts_with(std::string_view text, std::string_view beginning) {
  return text.substr(0, beginning.size()) == beginning;
}

// Zero rows have no norm without an epsilon; a kernel that ignores it is found by any other one.
bool drops_epsilon(std::string_view name) {
  constexpr std::string_view dropped = ".eps=0";
  return name.size() >= dropped.size() && name.substr(name.size() - dropped.size()) == dropped;
}

// The neighbour needs nothing that the drawn case does not have.
bool has_inputs_for(const qkcts_contract& terms, const qkcts_contract& other, const qkcts_shape& shape, Format format) {
  const std::vector<InputRequirement> drawn = required_inputs(terms, shape, format);
  const std::vector<InputRequirement> needed = required_inputs(other, shape, format);
  return std::all_of(needed.begin(), needed.end(), [&](const InputRequirement& need) {
    return std::any_of(drawn.begin(), drawn.end(), [&](const InputRequirement& given) {
      return given.input == need.input && given.shape == need.shape;
    });
  });
}

std::string no_fault(const qkcts_contract&, const qkcts_shape&, Format) {
  return {};
}

// Inputs that the neighbour does not take are left out where the case is made (relation_member.cpp).
constexpr RelationRecipe recipes[] = {{RelationKind::liveness, no_fault}};

}  // namespace

std::vector<Neighbour> ignored_clauses(const qkcts_contract& terms, const qkcts_shape& shape, Format format) {
  std::vector<Neighbour> list;
  const std::vector<Neighbour> all = neighbours(terms);
  for (const std::string_view field : ignored_fields)
    for (const Neighbour& neighbour : all)
      if (starts_with(neighbour.name, field) && !drops_epsilon(neighbour.name) &&
          shape_fault(neighbour.terms, shape).empty() && has_inputs_for(terms, neighbour.terms, shape, format)) {
        list.push_back(neighbour);
        break;
      }
  return list;
}

std::span<const RelationRecipe> clause_recipes() {
  return recipes;
}

}  // namespace qkcts
