// SPDX-License-Identifier: Apache-2.0
// P9: factors of v, common signs of q and k, and the order of the keys.
#include <algorithm>
#include <cmath>

#include "vectors/relation_recipe.hpp"

namespace qkcts {
namespace {

constexpr int value_exponent = 2;

bool transforms_values(const qkcts_contract& terms) {
  return transforms(terms.v_norm, terms.v_range);
}

// The output is linear in v. A power of two commutes with every rounding, barring under- and overflow.
std::string scale_fault(const qkcts_contract& terms, const qkcts_shape&, Format) {
  if (std::string fault = point_fault(terms); !fault.empty()) return fault;
  return transforms_values(terms) ? "the values are normalised or clamped" : "";
}

void scale_values(Case& c, Part part) {
  require_moderate(c, Input::v);
  if (part == Part::second) change_input(c, Input::v, [](double x) { return std::ldexp(x, value_exponent); });
}

void say_exponent(Relation& relation, const Case&) {
  relation.exponent = value_exponent;
}

// Rounding to nearest is odd, and so is a norm without a bias.
std::string sign_fault(const qkcts_contract& terms, const qkcts_shape&, Format) {
  return terms.v_norm.bias_axes != QKCTS_AXES_NONE ? "the norm of v has a bias" : "";
}

void negate_values(Case& c, Part part) {
  if (part == Part::second) change_input(c, Input::v, [](double x) { return -x; });
}

std::string joint_fault(const qkcts_contract& terms, const qkcts_shape&, Format) {
  if (std::string fault = projection_fault(terms); !fault.empty()) return fault;
  const bool bias = terms.q_norm.bias_axes != QKCTS_AXES_NONE || terms.k_norm.bias_axes != QKCTS_AXES_NONE;
  return bias ? "a norm has a bias" : "";
}

void negate_vectors(Case& c, Part part) {
  if (part == Part::first) return;
  for (const Input input : {Input::q, Input::k}) change_input(c, input, [](double x) { return -x; });
}

// A sum over the keys does not know their order. What the index of a key decides does.
std::string order_fault(const qkcts_contract& terms, const qkcts_shape& shape, Format) {
  if (std::string fault = projection_fault(terms); !fault.empty()) return fault;
  const qkcts_mask& mask = terms.mask;
  if (mask.causal != 0 || mask.kv_lengths != 0 || mask.has_window != 0 || terms.regions.chunk > 0)
    return "the index of a key decides who sees it";
  if (terms.logits.alibi != QKCTS_ALIBI_NONE) return "the index of a key moves its score";
  return shape.k_len < 2 ? "there is one key" : "";
}

// In reverse order.
std::vector<std::uint32_t> reversal(std::int64_t keys) {
  std::vector<std::uint32_t> order;
  for (std::int64_t j = keys; j-- > 0;) order.push_back(static_cast<std::uint32_t>(j));
  return order;
}

// The keys are the axis of this extent with `inner` elements behind it.
void permute(Case& c, Input input, std::int64_t inner) {
  if (!c.inputs.has(input)) return;
  const Tensor& old = c.inputs.at(input);
  Tensor tensor = old;
  const std::vector<std::uint32_t> order = reversal(c.shape.k_len);
  const auto length = static_cast<std::size_t>(inner);
  for (std::size_t i = 0; i < old.count(); ++i) {
    const std::size_t key = i / length % order.size();
    tensor.set_pattern(i, old.pattern(i + (order[key] * length) - key * length));
  }
  c.inputs.set(input, std::move(tensor));
}

void permute_keys(Case& c, Part part) {
  if (part == Part::first) return;
  permute(c, Input::k, c.shape.head_dim);
  permute(c, Input::v, c.shape.v_head_dim);
  for (const Input input : {Input::k_position_ids, Input::k_document_ids, Input::mask, Input::bias})
    permute(c, input, 1);
}

void say_order(Relation& relation, const Case& first) {
  relation.permutation = reversal(first.shape.k_len);
}

constexpr RelationRecipe recipes[] = {
    {RelationKind::value_scale, scale_fault, nullptr, nullptr, scale_values, say_exponent},
    {RelationKind::value_sign, sign_fault, nullptr, nullptr, negate_values},
    {RelationKind::joint_sign, joint_fault, nullptr, nullptr, negate_vectors},
    {RelationKind::key_permutation, order_fault, nullptr, nullptr, permute_keys, say_order},
};

}  // namespace

std::span<const RelationRecipe> value_recipes() {
  return recipes;
}

}  // namespace qkcts
