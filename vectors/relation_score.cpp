// SPDX-License-Identifier: Apache-2.0
// P5: what softmax does not see, and what it orders.
#include <algorithm>
#include <cmath>

#include "vectors/relation_recipe.hpp"

namespace qkcts {
namespace {

// ---- A common shift: exp(x + c) / sum exp(x + c) = exp(x) / sum exp(x). It comes in through the additive bias, which
// is made of multiples of 2^(3 - p) in [-2, 2], so that bias + 4 is exact.

constexpr double common_number = 4;

std::string shift_fault(const qkcts_contract& terms, const qkcts_shape&, Format) {
  if (std::string fault = point_fault(terms); !fault.empty()) return fault;
  if (terms.score.bias_order == QKCTS_BIAS_NONE) return "the contract has no additive bias";
  if (terms.score.bias_order == QKCTS_BIAS_BEFORE_SOFTCAP && terms.score.softcap != 0)
    return "the bias goes through the cap";
  return terms.softmax.sink != QKCTS_SINK_NONE ? "the sink is not shifted along" : "";
}

void shift_bias(Case& c, Part part) {
  const double quantum = std::ldexp(1.0, 3 - parameters(c.inputs.format).precision);
  const double shift = part == Part::second ? common_number : 0;
  change_input(c, Input::bias, [&](double x) {
    return std::isinf(x) ? x : std::clamp(std::nearbyint(x / quantum) * quantum, -2.0, 2.0) + shift;
  });
}

void say_shift(Relation& relation, const Case& first) {
  relation.shift = common_number;
  // Weights in base 2 with a natural logarithm, or the other way round: lse moves by a multiple of the shift.
  const qkcts_softmax& softmax = first.contract.terms.softmax;
  if (softmax.base != softmax.lse_base) relation.stages &= ~bit(QKCTS_STAGE_LSE);
}

// ---- The temperature: p at 2T is a monotone function of the scores like p at T, and p at T majorises it: each sum of
// the m largest weights is at least that at 2T. Entropy is Schur-concave, so it does not fall.

std::string temperature_fault(const qkcts_contract& terms, const qkcts_shape&, Format) {
  if (std::string fault = point_fault(terms); !fault.empty()) return fault;
  if (terms.score.softcap != 0) return "the cap bends what the temperature scales";
  if (terms.score.bias_order != QKCTS_BIAS_NONE || terms.logits.alibi != QKCTS_ALIBI_NONE)
    return "a bias is not divided by the temperature";
  return terms.softmax.sink != QKCTS_SINK_NONE ? "the sink is not divided by the temperature" : "";
}

void double_temperature(qkcts_contract& terms, Part part) {
  if (part == Part::second) terms.score.temperature = 2 * (terms.score.temperature == 0 ? 1 : terms.score.temperature);
}

void say_weights(Relation& relation, const Case&) {
  relation.stages = bit(QKCTS_STAGE_PROBS);
}

constexpr RelationRecipe recipes[] = {
    {RelationKind::score_shift, shift_fault, nullptr, nullptr, shift_bias, say_shift, true},
    {RelationKind::temperature, temperature_fault, double_temperature, nullptr, nullptr, say_weights},
};

}  // namespace

std::span<const RelationRecipe> score_recipes() {
  return recipes;
}

}  // namespace qkcts
