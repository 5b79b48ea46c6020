// SPDX-License-Identifier: Apache-2.0
// P2, P3 and P7: what a norm does not see.
#include <algorithm>
#include <array>
#include <cmath>

#include "vectors/relation_recipe.hpp"

namespace qkcts {
namespace {

// 2^3: large enough that another epsilon than the contract's shows, small enough that no square overflows.
constexpr int rescaling_exponent = 3;

struct NormedInput {
  Input input;
  qkcts_norm qkcts_contract::*norm;
  qkcts_norm_range qkcts_contract::*range;
};
constexpr std::array normed_inputs = {NormedInput{Input::q, &qkcts_contract::q_norm, &qkcts_contract::q_range},
                                      NormedInput{Input::k, &qkcts_contract::k_norm, &qkcts_contract::k_range}};

bool is_normed(const qkcts_contract& terms, const NormedInput& side) {
  return (terms.*side.norm).applied != 0;
}

bool has_norm(const qkcts_contract& terms) {
  return terms.q_norm.applied != 0 || terms.k_norm.applied != 0;
}

bool clips_before(const qkcts_contract& terms) {
  return terms.q_range.clip_before != 0 || terms.k_range.clip_before != 0;
}

std::string shared_fault(const qkcts_contract& terms) {
  if (std::string fault = point_fault(terms); !fault.empty()) return fault;
  if (std::string fault = projection_fault(terms); !fault.empty()) return fault;
  if (!has_norm(terms)) return "the contract has no norm of q or k";
  return clips_before(terms) ? "a clamp stands before the norm" : "";
}

// ---- P2: c = 2^k x has t(c) = 4^k t(x); with the other epsilon the root is 2^k times the root, and the quotient the
// same. Powers of two commute with every rounding, barring under- and overflow: the bits are the same.

std::string rescaling_fault(const qkcts_contract& terms, const qkcts_shape&, Format) {
  if (std::string fault = shared_fault(terms); !fault.empty()) return fault;
  for (const NormedInput& side : normed_inputs) {
    const double eps = (terms.*side.norm).eps;
    if (is_normed(terms, side) && eps != 0 && !(eps >= 0x1p-100 && eps <= 0x1p60))
      return "epsilon is out of what single precision squares safely";
  }
  return {};
}

void rescale_eps(qkcts_contract& terms, Part part) {
  if (part == Part::first) return;
  for (const NormedInput& side : normed_inputs) {
    qkcts_norm& norm = terms.*side.norm;
    const bool inside = norm.root == QKCTS_INSIDE_ROOT || norm.root == QKCTS_MAX_INSIDE;
    if (norm.applied != 0) norm.eps = std::ldexp(norm.eps, inside ? 2 * rescaling_exponent : rescaling_exponent);
  }
}

void rescale_vectors(Case& c, Part part) {
  for (const NormedInput& side : normed_inputs) {
    if (!is_normed(c.contract.terms, side)) continue;
    require_moderate(c, side.input);
    if (part == Part::second) change_input(c, side.input, [](double x) { return std::ldexp(x, rescaling_exponent); });
  }
}

void say_exponent(Relation& relation, const Case&) {
  relation.exponent = rescaling_exponent;
}

// ---- P3: x + c has the mean of x, plus c. Both are exact, since x is a multiple of 2^(3 - p) in [-2, 2] and c = 4.

constexpr double common_number = 4;

std::string shift_fault(const qkcts_contract& terms, std::uint32_t center) {
  if (std::string fault = shared_fault(terms); !fault.empty()) return fault;
  if (terms.rope.order == QKCTS_ROPE_THEN_NORM) return "a rotation before the norm turns the number away";
  const bool any = std::any_of(normed_inputs.begin(), normed_inputs.end(), [&](const NormedInput& side) {
    return is_normed(terms, side) && (terms.*side.norm).center == center;
  });
  if (any) return {};
  return center != 0 ? "no norm subtracts the mean" : "every norm subtracts the mean";
}
std::string centred_fault(const qkcts_contract& terms, const qkcts_shape&, Format) {
  return shift_fault(terms, 1);
}
std::string uncentred_fault(const qkcts_contract& terms, const qkcts_shape&, Format) {
  return shift_fault(terms, 0);
}

void shift_vectors(Case& c, Part part, std::uint32_t center) {
  const double quantum = std::ldexp(1.0, 3 - parameters(c.inputs.format).precision);
  const double shift = part == Part::second ? common_number : 0;
  for (const NormedInput& side : normed_inputs)
    if (is_normed(c.contract.terms, side) && (c.contract.terms.*side.norm).center == center)
      change_input(c, side.input,
                   [&](double x) { return std::clamp(std::nearbyint(x / quantum) * quantum, -2.0, 2.0) + shift; });
}
void shift_centred(Case& c, Part part) {
  shift_vectors(c, part, 1);
}
void shift_uncentred(Case& c, Part part) {
  shift_vectors(c, part, 0);
}

void say_shift(Relation& relation, const Case&) {
  relation.shift = common_number;
}

// ---- P7: a rotation keeps the sum of squares of each pair, so the root is the same before and after it.

std::string order_fault(const qkcts_contract& terms, const qkcts_shape&, Format) {
  if (std::string fault = shared_fault(terms); !fault.empty()) return fault;
  if (terms.rope.order == QKCTS_ROPE_NONE) return "the contract does not rotate";
  if (terms.rotation.attention_factor != 0 && terms.rotation.attention_factor != 1) return "the rotation has a factor";
  for (const NormedInput& side : normed_inputs) {
    const qkcts_norm& norm = terms.*side.norm;
    if (norm.applied != 0 && (norm.center != 0 || norm.gain != QKCTS_GAIN_NONE || norm.bias_axes != QKCTS_AXES_NONE))
      return "a mean, a gain or a bias does not turn with the vector";
    if ((terms.*side.range).clip_after != 0) return "a clamp does not turn with the vector";
  }
  return {};
}

void exchange_order(qkcts_contract& terms, Part part) {
  if (part == Part::first) return;
  terms.rope.order = terms.rope.order == QKCTS_NORM_THEN_ROPE ? QKCTS_ROPE_THEN_NORM : QKCTS_NORM_THEN_ROPE;
}

constexpr RelationRecipe recipes[] = {
    {RelationKind::eps_rescaling, rescaling_fault, rescale_eps, nullptr, rescale_vectors, say_exponent},
    {RelationKind::common_shift, centred_fault, nullptr, nullptr, shift_centred, say_shift, true},
    {RelationKind::shift_seen, uncentred_fault, nullptr, nullptr, shift_uncentred, say_shift, true},
    {RelationKind::rotation_order, order_fault, exchange_order},
};

}  // namespace

std::span<const RelationRecipe> norm_recipes() {
  return recipes;
}

}  // namespace qkcts
