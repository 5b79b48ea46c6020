// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_vectors.hpp"

#include <algorithm>

namespace qkcts {
namespace {

constexpr std::size_t kept_numbers = std::size_t{1} << 19;  // 4 MiB

// Where probabilities are rounded at a point, weights are not stored in another format before it.
Profile profile_for(const Profile& profile, const qkcts_rounding& rounding) {
  Profile result = profile;
  if (rounding.probs != 0) {
    result.probability_storage.reset();
  }
  return result;
}

// Ascending rows visit the query heads of one batch entry one after another; those that share keys and values are
// neighbours where heads share them in blocks, so that one head is enough, else all heads of the entry are needed.
std::size_t most_heads(const Case& c) {
  const auto numbers = static_cast<std::size_t>(2 * c.shape.k_len * (c.shape.head_dim + c.shape.v_head_dim));
  const std::size_t least =
      c.contract.terms.heads.mapping == QKCTS_HEADS_BLOCK ? 1 : static_cast<std::size_t>(c.shape.kv_heads);
  return std::max(least, kept_numbers / numbers);
}

}  // namespace

VectorBudgets::VectorBudgets(const Case& c, const ExactStages& exact, const Profile& profile, TermSet terms)
    : case_(c),
      exact_(exact),
      arithmetic_(profile_for(profile, c.contract.terms.rounding), terms),
      tokens_(c),
      q_(c, exact, OperandSide::q, arithmetic_),
      k_(c, exact, OperandSide::k, arithmetic_),
      v_(c, exact, OperandSide::v, arithmetic_),
      has_value_norm_((stages_of(c.contract.terms) & bit(QKCTS_STAGE_V_NORM)) != 0),
      most_heads_(most_heads(c)) {}

OperandBudget& VectorBudgets::side(OperandSide side) {
  return side == OperandSide::q ? q_ : (side == OperandSide::k ? k_ : v_);
}

const HeadData& VectorBudgets::head(std::int64_t b, std::int64_t kv_head) {
  const auto known = heads_.find({b, kv_head});
  if (known != heads_.end()) {
    return known->second;
  }
  if (heads_.size() >= most_heads_) {
    heads_.clear();
  }
  const ValueNorm norm = has_value_norm_ ? ValueNorm{&v_, &exact_.values[QKCTS_STAGE_V_NORM]} : ValueNorm{};
  return heads_.try_emplace({b, kv_head}, head_data(case_, b, kv_head, k_, norm, tokens_, arithmetic_)).first->second;
}

}  // namespace qkcts
