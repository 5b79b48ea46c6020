// SPDX-License-Identifier: Apache-2.0
// P1, P4 and P6: what norms, caps and softmax bound. The bounds are computed from contract and gains in binary64 and
// made larger by 2^-40 of themselves, far more than their few dozen roundings can have lost.
#include <algorithm>
#include <array>
#include <cmath>

#include "conformance/sound_math.hpp"
#include "vectors/relation_recipe.hpp"

namespace qkcts {
namespace {

constexpr double outward = 1 + 0x1p-40;

struct NormSide {
  Input gain;
  qkcts_norm qkcts_contract::*norm;
  qkcts_norm_range qkcts_contract::*range;
  std::int64_t qkcts_shape::*heads;
};
constexpr std::array norm_sides = {
    NormSide{Input::q_gain, &qkcts_contract::q_norm, &qkcts_contract::q_range, &qkcts_shape::q_heads},
    NormSide{Input::k_gain, &qkcts_contract::k_norm, &qkcts_contract::k_range, &qkcts_shape::kv_heads}};

bool norms_bound_scores(const qkcts_contract& terms) {
  const auto bounded = [&](const NormSide& side) {
    const qkcts_norm& norm = terms.*side.norm;
    return norm.applied != 0 && norm.bias_axes == QKCTS_AXES_NONE;
  };
  return std::all_of(norm_sides.begin(), norm_sides.end(), bounded) && terms.logits.scale_exp_cap == 0 &&
         terms.logits.query_temperature == QKCTS_QUERY_TEMPERATURE_NONE &&
         (terms.rotation.attention_factor == 0 || terms.rotation.attention_factor == 1);
}

bool cap_bounds(const qkcts_contract& terms) {
  return terms.score.softcap != 0 && terms.score.bias_order != QKCTS_BIAS_AFTER_SOFTCAP &&
         terms.logits.alibi == QKCTS_ALIBI_NONE;
}

double largest_of(const Case& c, Input input, double plus = 0) {
  double largest = 0;
  for (const double value : c.inputs.at(input).values()) largest = std::max(largest, std::fabs(plus + value));
  return largest;
}

// |c/d| <= sqrt(n) for a mean, <= 1 for a sum, for every root and epsilon >= 0; one head is a part of a full width. The
// largest gain and the multiplier come on top.
double longest_vector(const Case& c, const NormSide& side) {
  const qkcts_contract& terms = c.contract.terms;
  const qkcts_norm& norm = terms.*side.norm;
  const auto heads = static_cast<double>(norm.axis == QKCTS_AXIS_FULL_WIDTH ? c.shape.*side.heads : 1);
  double length = norm.statistic == QKCTS_MEAN_SQUARE ? std::sqrt(heads * static_cast<double>(c.shape.head_dim)) : 1;
  if (norm.gain != QKCTS_GAIN_NONE) length *= largest_of(c, side.gain, norm.gain == QKCTS_GAIN_ONE_PLUS_W ? 1 : 0);
  const double multiplier = (terms.*side.range).multiplier;
  return multiplier == 0 ? length : length * multiplier;
}

// cos and sin are rounded, so that a rotation may stretch a little.
double largest_stretch(const Case& c) {
  if (!c.inputs.has(Input::cos)) return 1;
  const Tensor &cos = c.inputs.at(Input::cos), &sin = c.inputs.at(Input::sin);
  double largest = 1;
  for (std::size_t i = 0; i < cos.count(); ++i)
    largest = std::max(largest, std::sqrt(cos.value(i) * cos.value(i) + sin.value(i) * sin.value(i)));
  return largest * outward;
}

double largest_scale(const Case& c) {
  const qkcts_score& score = c.contract.terms.score;
  double scale = 0;
  switch (score.scale_form) {
    case QKCTS_SCALE_CONSTANT:
      scale = score.scale_value;
      break;
    case QKCTS_SCALE_INV_SQRT_SCALAR:
      scale = 1 / std::sqrt(score.scale_value);
      break;
    case QKCTS_SCALE_LEARNED_SCALAR:
      scale = largest_of(c, Input::scale);
      break;
    default:
      scale = 1 / std::sqrt(static_cast<double>(c.shape.head_dim));
  }
  return score.temperature == 0 ? scale : scale / score.temperature;
}

double score_bound(const Case& c) {
  const double stretch = largest_stretch(c);
  return longest_vector(c, norm_sides[0]) * longest_vector(c, norm_sides[1]) * stretch * stretch * largest_scale(c) *
         outward;
}

// ---- P1

std::string score_fault(const qkcts_contract& terms, const qkcts_shape&, Format) {
  if (std::string fault = point_fault(terms); !fault.empty()) return fault;
  return norms_bound_scores(terms) || cap_bounds(terms) ? "" : "neither two norms nor a cap bound the scores";
}

void say_bounds(Relation& relation, const Case& c) {
  relation.stages = 0;
  if (norms_bound_scores(c.contract.terms)) {
    relation.bounds[QKCTS_STAGE_SCORES] = score_bound(c);
    relation.stages |= bit(QKCTS_STAGE_SCORES);
  }
  if (cap_bounds(c.contract.terms)) {
    relation.bounds[QKCTS_STAGE_CAPPED] = c.contract.terms.score.softcap;
    relation.stages |= bit(QKCTS_STAGE_CAPPED);
  }
}

// ---- P4: of n weights exp(x_j)/sum, |x_j| <= B, none exceeds e^B / (e^B + (n - 1) e^-B). -sum p ln p >= -ln max p.

std::string weight_fault(const qkcts_contract& terms, const qkcts_shape& shape, Format format) {
  if (std::string fault = score_fault(terms, shape, format); !fault.empty()) return fault;
  const bool biased = terms.score.bias_order != QKCTS_BIAS_NONE && !cap_bounds(terms);
  return biased || terms.logits.alibi != QKCTS_ALIBI_NONE ? "a bias moves the scores out of their bound" : "";
}

void say_row_bounds(Relation& relation, const Case& c) {
  relation.stages = bit(QKCTS_STAGE_PROBS);
  const qkcts_contract& terms = c.contract.terms;
  double bound = cap_bounds(terms) ? terms.score.softcap : score_bound(c);
  if (cap_bounds(terms) && norms_bound_scores(terms) && terms.score.bias_order == QKCTS_BIAS_NONE)
    bound = std::min(bound, score_bound(c));
  if (terms.softmax.base == QKCTS_BASE_TWO) bound *= 0x1.62e42fefa39efp-1;  // ln 2
  const qkcts_shape& s = c.shape;
  const Visibility visibility(c);
  double least = 1;
  for (std::int64_t row = 0; row < s.batch * s.q_heads * s.q_len; ++row) {
    double keys = 0;
    for (std::int64_t key = 0; key < s.k_len; ++key)
      if (visibility.visible(row / s.q_len / s.q_heads, row / s.q_len % s.q_heads, row % s.q_len, key)) ++keys;
    const double most = keys < 2 ? 1 : std::min(1.0, outward / (1 + (keys - 1) * exp_lower(-2 * bound)));
    relation.row_bounds.push_back(most);
    least = std::min(least, most);
  }
  if (least > 0.9) throw RelationInapplicable("the bound leaves every weight free");
}

// ---- P6

std::string hull_fault(const qkcts_contract& terms, const qkcts_shape&, Format) {
  return point_fault(terms);
}

void say_hull(Relation& relation, const Case&) {
  relation.stages = bit(QKCTS_STAGE_PROBS) | bit(QKCTS_STAGE_OUTPUT);
}

constexpr RelationRecipe recipes[] = {
    {RelationKind::score_bound, score_fault, nullptr, nullptr, nullptr, say_bounds},
    {RelationKind::weight_bound, weight_fault, nullptr, nullptr, nullptr, say_row_bounds},
    {RelationKind::sums_and_hull, hull_fault, nullptr, nullptr, nullptr, say_hull},
};

}  // namespace

std::span<const RelationRecipe> bound_recipes() {
  return recipes;
}

}  // namespace qkcts
