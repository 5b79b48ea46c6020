// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "vectors/relation.hpp"

namespace qkcts {
namespace {

constexpr RelationRow table[] = {
    {RelationKind::score_bound, "P1", "score_bound", RelationRule::bound, 1,
     "norms bound the scores (Cauchy and Schwarz), a cap bounds what it caps",
     "a score exceeds what normalised vectors or the cap allow: a norm or the cap is missing or misplaced"},
    {RelationKind::eps_rescaling, "P2", "eps_rescaling", RelationRule::bitwise, 2,
     "vectors times 2^k with epsilon times 4^k (2^k outside the root) normalise alike",
     "scaling epsilon and the vectors together changed the result: epsilon is ignored, hard-coded, floored or "
     "misplaced"},
    {RelationKind::common_shift, "P3", "common_shift", RelationRule::delta, 2,
     "a centred norm does not see a number that is added to every lane",
     "adding one number to every lane changed a centred norm: the mean is not subtracted"},
    {RelationKind::shift_seen, "P3", "shift_seen", RelationRule::apart, 2,
     "a norm that does not centre sees a number that is added to every lane",
     "adding one number to every lane changed next to nothing: the norm centres although its contract does not"},
    {RelationKind::weight_bound, "P4", "weight_bound", RelationRule::bound, 1,
     "scores of at most B leave no weight above 1/(1 + (n - 1) e^(-2B)), and no entropy below minus its logarithm",
     "a weight exceeds what bounded scores allow: scores are larger than norm, scale or cap let them be"},
    {RelationKind::score_shift, "P5", "score_shift", RelationRule::delta, 2,
     "a number added to all scores leaves the weights and moves the log-sum-exp by itself",
     "adding one number to all scores changed the weights, or not the log-sum-exp: the bias is ignored or misplaced"},
    {RelationKind::temperature, "P5", "temperature", RelationRule::order, 2,
     "a higher temperature keeps the order of the weights and evens them out",
     "raising the temperature reordered the weights or made them less even: it is inverted or misplaced"},
    {RelationKind::sums_and_hull, "P6", "sums_and_hull", RelationRule::bound, 1,
     "weights sum to 1 (with a sink column to at most 1), outputs lie between the visible values",
     "weights do not sum to 1, or an output lies outside of the visible values: normalisation or masking is wrong"},
    {RelationKind::rotation_order, "P7", "rotation_order", RelationRule::reference, 2,
     "an RMS or L2 norm without gain commutes with the rotation",
     "nothing is asked of an adapter: both orders are right"},
    {RelationKind::batch_position, "P8", "batch_position", RelationRule::bitwise_in_batch, 2,
     "an entry has the same result alone and at another place of a batch",
     "an entry came out otherwise in a batch: something of other entries reaches it"},
    {RelationKind::value_scale, "P9", "value_scale", RelationRule::bitwise, 2,
     "values times 2^k give outputs times 2^k", "scaling v by a power of two did not scale the output by it"},
    {RelationKind::value_sign, "P9", "value_sign", RelationRule::bitwise, 2, "negated values give negated outputs",
     "negating v did not negate the output"},
    {RelationKind::joint_sign, "P9", "joint_sign", RelationRule::bitwise, 2,
     "q and k negated together leave the scores",
     "negating q and k together changed the scores: something even or biased stands before them"},
    {RelationKind::key_permutation, "P9", "key_permutation", RelationRule::delta, 2,
     "keys, values and all that belongs to a key permuted together leave the outputs",
     "permuting keys with their values changed the result: a key is lost, or paired with the value of another"},
    {RelationKind::repeated_heads, "P10", "repeated_heads", RelationRule::bitwise_in_batch, 2,
     "grouped heads are heads with repeated keys and values",
     "repeating k and v for every query head changed the result: query heads read other key heads than the contract "
     "says"},
    {RelationKind::prefix, "P11", "prefix", RelationRule::bitwise, 2,
     "rows that see no key from t on do not change with those keys and values",
     "keys that a row must not see changed it: the mask leaks"},
    {RelationKind::liveness, "P12", "liveness", RelationRule::differ, 2,
     "another value of a clause that these inputs tell apart gives other outputs",
     "changing the clause changed no bit of the output: it is accepted and ignored"},
};
static_assert(std::size(table) == relation_kind_count);

}  // namespace

std::span<const RelationRow> relation_table() {
  return table;
}

const RelationRow& row(RelationKind kind) {
  return table[static_cast<std::size_t>(kind)];
}

std::optional<RelationKind> relation_kind_named(std::string_view name) {
  const auto found = std::find_if(std::begin(table), std::end(table), [&](const auto& r) { return r.name == name; });
  if (found == std::end(table)) return std::nullopt;
  return found->kind;
}

std::string_view relation_rule_name(RelationRule rule) {
  switch (rule) {
    case RelationRule::bitwise:
      return "bitwise";
    case RelationRule::bitwise_in_batch:
      return "bitwise_in_batch";
    case RelationRule::delta:
      return "delta";
    case RelationRule::bound:
      return "bound";
    case RelationRule::order:
      return "order";
    case RelationRule::differ:
      return "differ";
    case RelationRule::apart:
      return "apart";
    case RelationRule::reference:
      break;
  }
  return "reference";
}

std::optional<RelationRule> relation_rule_named(std::string_view name) {
  for (auto rule = RelationRule::bitwise;; rule = static_cast<RelationRule>(static_cast<int>(rule) + 1)) {
    if (relation_rule_name(rule) == name) return rule;
    if (rule == RelationRule::reference) return std::nullopt;
  }
}

}  // namespace qkcts
