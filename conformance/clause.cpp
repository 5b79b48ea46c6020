// SPDX-License-Identifier: Apache-2.0
#include "conformance/clause.hpp"

namespace qkcts {
namespace {

constexpr Clause table[] = {
    {"QK-HEADS-01", "Query head h uses key/value head floor(h / G)"},
    {"QK-HEADS-02", "Whether query heads share a key/value head in blocks or in turn"},
    {"QK-NORM-01", "Which norm stands on q and which on k"},
    {"QK-NORM-02", "Whether the mean is subtracted"},
    {"QK-NORM-03", "Mean or sum of squares"},
    {"QK-NORM-04", "Over one head or over the full width"},
    {"QK-EPS-01", "The value of epsilon"},
    {"QK-EPS-02", "Where epsilon enters the root"},
    {"QK-VAR-01", "How the variance may be formed"},
    {"QK-GAIN-01", "The factor after the division: none, w or 1 + w"},
    {"QK-GAIN-02", "Which axes the gain runs over"},
    {"QK-GAIN-03", "Bias after the gain, and its axes"},
    {"QK-VNORM-01", "The norm, clamps and factor of v"},
    {"QK-PROJ-01", "Whether q and k are projected from given rows"},
    {"QK-PROJ-02", "The bias of the projection"},
    {"QK-PROJ-03", "The norm before the projection"},
    {"QK-CLIP-01", "The clamp before the norm"},
    {"QK-MULT-01", "The constant factor after the norm"},
    {"QK-CLIP-02", "The clamp after the norm"},
    {"QK-ROPE-01", "Rotary embedding before or after the norm"},
    {"QK-ROPE-02", "Which two lanes turn together"},
    {"QK-ROPE-03", "Which end of the head is rotated"},
    {"QK-ROPE-04", "How many lanes are rotated"},
    {"QK-ROPE-05", "The angles: theta and the tables"},
    {"QK-ROPE-06", "The rotation of a pair, and the row of the tables"},
    {"QK-ROPE-07", "The sense of the rotation"},
    {"QK-ROPE-08", "Where the rotated lanes are left"},
    {"QK-ROPE-09", "Whether cos and sin are given or computed"},
    {"QK-ROPE-10", "How the frequencies are scaled"},
    {"QK-ROPE-11", "The factor of cos and sin"},
    {"QK-ROPE-12", "Whether all heads turn by the same tables"},
    {"QK-SCALE-01", "Where the scale of the scores comes from"},
    {"QK-SCALE-02", "The value of the scale"},
    {"QK-SCALE-03", "Whether the learned scale is one or one per head"},
    {"QK-SCALE-04", "Whether the learned scale is the exponential of a clamped logarithm"},
    {"QK-QTEMP-01", "The factor of the scores by the position of the query"},
    {"QK-QTEMP-02", "The constants of that factor"},
    {"QK-TEMP-01", "The temperature divides the scores"},
    {"QK-CAP-01", "The soft-cap c tanh(s / c), before the mask"},
    {"QK-BIAS-01", "The additive bias, and its order with the soft-cap"},
    {"QK-ALIBI-01", "The linear bias by distance"},
    {"QK-MASK-01", "Causal visibility"},
    {"QK-MASK-02", "Where query 0 stands among the keys"},
    {"QK-MASK-03", "Key lengths per batch entry"},
    {"QK-MASK-04", "Boolean mask"},
    {"QK-MASK-05", "Window"},
    {"QK-MASK-06", "A hidden key is excluded: p = 0"},
    {"QK-MASK-07", "Chunks"},
    {"QK-MASK-08", "Documents"},
    {"QK-MASK-09", "The prefix that every query sees"},
    {"QK-HIDDEN-01", "NaN and infinities in keys that a row does not see"},
    {"QK-EMPTY-01", "What a row without a visible key returns"},
    {"QK-SOFTMAX-01", "Softmax over the visible keys"},
    {"QK-SINK-01", "The sink: a logit without a key"},
    {"QK-BASE-01", "The base of the weights"},
    {"QK-BASE-02", "The base of the log-sum-exp"},
    {"QK-LSE-01", "The log-sum-exp of a row"},
    {"QK-OUT-01", "The output is the weighted sum of v"},
    {"QK-ROUND-01", "A declared rounding point"},
    {"QK-ROUND-02", "What a rounding point makes of numbers beyond its format"},
    {"QK-SPECIAL-01", "How far NaN and infinities reach"},
    {"QK-SPECIAL-02", "What they make of the vectors of q, k and v"},
    {"QK-SPECIAL-03", "What they make of a row of attention"},
    {"QK-SPECIAL-04", "How their classes are judged"},
    {"QK-SPECIAL-05", "Finite numbers that overflow"},
    {"QK-STAGE-01", "Stages, their order and their formats"},
};

}  // namespace

std::span<const Clause> clauses() {
  return table;
}

const Clause* find_clause(std::string_view id) {
  for (const Clause& clause : table)
    if (clause.id == id) return &clause;
  return nullptr;
}

std::string_view clause_group(std::string_view id) {
  const std::size_t dash = id.find('-', 3);
  return dash == std::string_view::npos ? id : id.substr(0, dash);
}

std::string clause_anchor(std::string_view id) {
  std::string anchor = "docs/contract.md#";
  for (const char c : id) anchor += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return anchor;
}

}  // namespace qkcts
