// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract_field.hpp"

#include <array>

namespace qkcts {
namespace {

using Text = std::string_view;

constexpr std::array<Text, 2> statistics = {"mean_square", "sum_square"};
constexpr std::array<Text, 4> roots = {"inside_root", "outside_root", "max_root", "max_inside"};
constexpr std::array<Text, 2> norm_axes = {"head", "full_width"};
constexpr std::array<Text, 2> variances = {"two_pass", "one_pass_clipped"};
constexpr std::array<Text, 3> gains = {"none", "w", "one_plus_w"};
constexpr std::array<Text, 6> param_axes = {"none", "scalar", "head_dim", "head", "head_head_dim", "full_width"};
constexpr std::array<Text, 3> rope_orders = {"none", "norm_then_rope", "rope_then_norm"};
constexpr std::array<Text, 2> rope_pairings = {"half_split", "interleaved"};
constexpr std::array<Text, 2> rope_spans = {"first", "last"};
constexpr std::array<Text, 4> scale_forms = {"inv_sqrt_head_dim", "constant", "inv_sqrt_scalar", "learned_scalar"};
constexpr std::array<Text, 3> bias_orders = {"none", "before_softcap", "after_softcap"};
constexpr std::array<Text, 4> alignments = {"top_left", "bottom_right", "bottom_right_valid", "offset"};
constexpr std::array<Text, 3> empty_rows = {"zero", "nan", "uniform"};

static_assert(statistics[QKCTS_SUM_SQUARE] == "sum_square");
static_assert(roots[QKCTS_MAX_INSIDE] == "max_inside" && roots[QKCTS_OUTSIDE_ROOT] == "outside_root");
static_assert(norm_axes[QKCTS_AXIS_FULL_WIDTH] == "full_width");
static_assert(variances[QKCTS_VARIANCE_ONE_PASS_CLIPPED] == "one_pass_clipped");
static_assert(gains[QKCTS_GAIN_ONE_PLUS_W] == "one_plus_w" && gains[QKCTS_GAIN_NONE] == "none");
static_assert(param_axes[QKCTS_AXES_FULL_WIDTH] == "full_width" && param_axes[QKCTS_AXES_HEAD] == "head");
static_assert(rope_orders[QKCTS_ROPE_THEN_NORM] == "rope_then_norm");
static_assert(rope_pairings[QKCTS_INTERLEAVED] == "interleaved" && rope_spans[QKCTS_SPAN_LAST] == "last");
static_assert(scale_forms[QKCTS_SCALE_LEARNED_SCALAR] == "learned_scalar" &&
              scale_forms[QKCTS_SCALE_CONSTANT] == "constant");
static_assert(bias_orders[QKCTS_BIAS_AFTER_SOFTCAP] == "after_softcap");
static_assert(alignments[QKCTS_OFFSET] == "offset" && alignments[QKCTS_BOTTOM_RIGHT] == "bottom_right");
static_assert(empty_rows[QKCTS_EMPTY_UNIFORM] == "uniform" && empty_rows[QKCTS_EMPTY_NAN] == "nan");

bool always(const qkcts_contract&) {
  return true;
}
bool q_applied(const qkcts_contract& c) {
  return c.q_norm.applied != 0;
}
bool k_applied(const qkcts_contract& c) {
  return c.k_norm.applied != 0;
}
bool q_gain(const qkcts_contract& c) {
  return q_applied(c) && c.q_norm.gain != QKCTS_GAIN_NONE;
}
bool k_gain(const qkcts_contract& c) {
  return k_applied(c) && c.k_norm.gain != QKCTS_GAIN_NONE;
}
bool q_variance(const qkcts_contract& c) {
  return q_applied(c) && c.q_norm.center != 0;
}
bool k_variance(const qkcts_contract& c) {
  return k_applied(c) && c.k_norm.center != 0;
}
bool rotates(const qkcts_contract& c) {
  return c.rope.order != QKCTS_ROPE_NONE;
}
bool partial(const qkcts_contract& c) {
  return rotates(c) && c.rope.rotated != 0;
}
bool has_scale_value(const qkcts_contract& c) {
  return c.score.scale_form == QKCTS_SCALE_CONSTANT || c.score.scale_form == QKCTS_SCALE_INV_SQRT_SCALAR;
}
bool aligned(const qkcts_contract& c) {
  return c.mask.causal != 0 || c.mask.has_window != 0;
}
bool has_offset(const qkcts_contract& c) {
  return aligned(c) && c.mask.alignment == QKCTS_OFFSET;
}
bool hides(const qkcts_contract& c) {
  return aligned(c) || c.mask.kv_lengths != 0 || c.mask.boolean != 0 || c.score.bias_order != QKCTS_BIAS_NONE;
}

#define QKCTS_AT(member) offsetof(qkcts_contract, member)
using enum FieldType;

constexpr ContractField table[] = {
    {"QK-NORM-02", "q_norm", "center", flag, QKCTS_AT(q_norm.center), {}, q_applied},
    {"QK-NORM-03", "q_norm", "statistic", enumeration, QKCTS_AT(q_norm.statistic), statistics, q_applied},
    {"QK-EPS-02", "q_norm", "root", enumeration, QKCTS_AT(q_norm.root), roots, q_applied},
    {"QK-NORM-04", "q_norm", "axis", enumeration, QKCTS_AT(q_norm.axis), norm_axes, q_applied},
    {"QK-VAR-01", "q_norm", "variance", enumeration, QKCTS_AT(q_norm.variance), variances, q_variance},
    {"QK-GAIN-01", "q_norm", "gain", enumeration, QKCTS_AT(q_norm.gain), gains, q_applied},
    {"QK-GAIN-02", "q_norm", "gain_axes", enumeration, QKCTS_AT(q_norm.gain_axes), param_axes, q_gain},
    {"QK-GAIN-03", "q_norm", "bias_axes", enumeration, QKCTS_AT(q_norm.bias_axes), param_axes, q_applied},
    {"QK-EPS-01", "q_norm", "eps", number, QKCTS_AT(q_norm.eps), {}, q_applied},
    {"QK-NORM-02", "k_norm", "center", flag, QKCTS_AT(k_norm.center), {}, k_applied},
    {"QK-NORM-03", "k_norm", "statistic", enumeration, QKCTS_AT(k_norm.statistic), statistics, k_applied},
    {"QK-EPS-02", "k_norm", "root", enumeration, QKCTS_AT(k_norm.root), roots, k_applied},
    {"QK-NORM-04", "k_norm", "axis", enumeration, QKCTS_AT(k_norm.axis), norm_axes, k_applied},
    {"QK-VAR-01", "k_norm", "variance", enumeration, QKCTS_AT(k_norm.variance), variances, k_variance},
    {"QK-GAIN-01", "k_norm", "gain", enumeration, QKCTS_AT(k_norm.gain), gains, k_applied},
    {"QK-GAIN-02", "k_norm", "gain_axes", enumeration, QKCTS_AT(k_norm.gain_axes), param_axes, k_gain},
    {"QK-GAIN-03", "k_norm", "bias_axes", enumeration, QKCTS_AT(k_norm.bias_axes), param_axes, k_applied},
    {"QK-EPS-01", "k_norm", "eps", number, QKCTS_AT(k_norm.eps), {}, k_applied},
    {"QK-ROPE-01", "rope", "order", enumeration, QKCTS_AT(rope.order), rope_orders, always},
    {"QK-ROPE-02", "rope", "pairing", enumeration, QKCTS_AT(rope.pairing), rope_pairings, rotates},
    {"QK-ROPE-03", "rope", "span", enumeration, QKCTS_AT(rope.span), rope_spans, partial},
    {"QK-ROPE-04", "rope", "rotated", lanes, QKCTS_AT(rope.rotated), {}, rotates},
    {"QK-ROPE-05", "rope", "theta", number, QKCTS_AT(rope.theta), {}, rotates},
    {"QK-SCALE-01", "score", "scale_form", enumeration, QKCTS_AT(score.scale_form), scale_forms, always},
    {"QK-BIAS-01", "score", "bias_order", enumeration, QKCTS_AT(score.bias_order), bias_orders, always},
    {"QK-SCALE-02", "score", "scale_value", number, QKCTS_AT(score.scale_value), {}, has_scale_value},
    {"QK-TEMP-01", "score", "temperature", number, QKCTS_AT(score.temperature), {}, always},
    {"QK-CAP-01", "score", "softcap", optional_number, QKCTS_AT(score.softcap), {}, always},
    {"QK-MASK-01", "mask", "causal", flag, QKCTS_AT(mask.causal), {}, always},
    {"QK-MASK-02", "mask", "alignment", enumeration, QKCTS_AT(mask.alignment), alignments, aligned},
    {"QK-MASK-03", "mask", "kv_lengths", flag, QKCTS_AT(mask.kv_lengths), {}, always},
    {"QK-MASK-04", "mask", "boolean", flag, QKCTS_AT(mask.boolean), {}, always},
    {"QK-EMPTY-01", "mask", "empty_row", enumeration, QKCTS_AT(mask.empty_row), empty_rows, hides},
    {"QK-MASK-02", "mask", "offset", integer, QKCTS_AT(mask.offset), {}, has_offset},
};

#undef QKCTS_AT

constexpr std::array<Text, 5> kinds = {"none", "rms", "layer_norm", "l2", "centered_l2"};

}  // namespace

std::span<const ContractField> contract_field_table() {
  return table;
}

std::span<const std::string_view> norm_kind_texts() {
  return kinds;
}

std::string_view norm_kind(const qkcts_norm& norm) {
  if (norm.applied == 0) return kinds[0];
  if (norm.statistic == QKCTS_MEAN_SQUARE) return norm.center == 0 ? kinds[1] : kinds[2];
  return norm.center == 0 ? kinds[3] : kinds[4];
}

}  // namespace qkcts
