// SPDX-License-Identifier: Apache-2.0
#include "vectors/relation_recipe.hpp"

#include <cmath>

#include <fmt/format.h>

namespace qkcts {

const RelationRecipe& relation_recipe(RelationKind kind) {
  for (const auto recipes :
       {norm_recipes(), bound_recipes(), score_recipes(), value_recipes(), layout_recipes(), clause_recipes()})
    for (const RelationRecipe& recipe : recipes)
      if (recipe.kind == kind) return recipe;
  throw std::logic_error("a relation without a recipe");
}

Case relation_part(const RelationRecipe& recipe, Part part, const Contract& contract, Case drawn) {
  if (recipe.inputs != nullptr) recipe.inputs(drawn, part);
  if (recipe.shape != nullptr) recipe.shape(drawn.shape, part);
  drawn.contract = contract;
  if (const std::string fault = case_fault(drawn); !fault.empty()) throw RelationInapplicable(fault);
  return drawn;
}

void change_input(Case& c, Input input, const std::function<double(double)>& change) {
  Tensor tensor = c.inputs.at(input);
  const auto format = static_cast<Format>(tensor.type);
  for (std::size_t i = 0; i < tensor.count(); ++i) {
    const double value = change(tensor.value(i));
    const std::uint64_t pattern = encode(format, value);
    if (decode(format, pattern) != value)
      throw RelationInapplicable(
          fmt::format("{} becomes {}, which is no number of {}", input_name(input), value, parameters(format).name));
    tensor.set_pattern(i, pattern);
  }
  c.inputs.set(input, std::move(tensor));
}

void require_moderate(const Case& c, Input input) {
  // Squares between 2^-100 and 2^80, their sums, and 4^3 times these are normal numbers of binary32.
  for (const double value : c.inputs.at(input).values())
    if (value != 0 && !(std::fabs(value) >= 0x1p-50 && std::fabs(value) <= 0x1p40))
      throw RelationInapplicable(
          fmt::format("{} holds {}: its square may under- or overflow", input_name(input), value));
}

std::string point_fault(const qkcts_contract& terms) {
  return has_rounding_points(terms.rounding) ? "the contract rounds on the way: the relation holds over the reals"
                                             : std::string();
}

std::string projection_fault(const qkcts_contract& terms) {
  return terms.projection.form != QKCTS_PROJECTION_NONE ? "q and k come out of a projection" : std::string();
}

}  // namespace qkcts
