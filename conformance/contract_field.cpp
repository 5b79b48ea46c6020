// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract_field.hpp"

#include <array>

#include "conformance/contract.hpp"

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
constexpr std::array<Text, 2> senses = {"positive", "negative"};
constexpr std::array<Text, 2> layouts = {"kept", "deinterleaved"};
constexpr std::array<Text, 2> angles = {"table", "computed"};
constexpr std::array<Text, 6> scalings = {"none", "linear", "ntk", "yarn", "llama3", "proportional"};
constexpr std::array<Text, 2> scale_axes = {"one", "per_head"};
constexpr std::array<Text, 4> alibis = {"none", "relative", "symmetric", "last_key"};
constexpr std::array<Text, 3> query_temperatures = {"none", "log", "log_ratio"};
constexpr std::array<Text, 3> sinks = {"none", "column", "post_scale"};
constexpr std::array<Text, 2> bases = {"e", "two"};
constexpr std::array<Text, 3> hidden_values = {"finite", "excluded", "propagated"};
constexpr std::array<Text, 2> head_mappings = {"block", "tile"};
constexpr std::array<Text, 2> rope_tables = {"shared", "per_head"};
constexpr std::array<Text, 2> projection_forms = {"none", "linear"};
constexpr std::array<Text, 7> points = {"none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"};

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
static_assert(senses[QKCTS_SENSE_NEGATIVE] == "negative" && layouts[QKCTS_LAYOUT_DEINTERLEAVED] == "deinterleaved");
static_assert(angles[QKCTS_ANGLES_COMPUTED] == "computed" && scalings[QKCTS_SCALING_PROPORTIONAL] == "proportional" &&
              scalings[QKCTS_SCALING_NTK] == "ntk" && scalings[QKCTS_SCALING_YARN] == "yarn");
static_assert(scale_axes[QKCTS_SCALE_PER_HEAD] == "per_head" && alibis[QKCTS_ALIBI_LAST_KEY] == "last_key" &&
              alibis[QKCTS_ALIBI_SYMMETRIC] == "symmetric");
static_assert(query_temperatures[QKCTS_QUERY_TEMPERATURE_LOG] == "log" && sinks[QKCTS_SINK_COLUMN] == "column" &&
              sinks[QKCTS_SINK_POST_SCALE] == "post_scale");
static_assert(bases[QKCTS_BASE_TWO] == "two" && hidden_values[QKCTS_HIDDEN_PROPAGATED] == "propagated" &&
              head_mappings[QKCTS_HEADS_TILE] == "tile");
static_assert(rope_tables[QKCTS_TABLES_PER_HEAD] == "per_head" &&
              projection_forms[QKCTS_PROJECTION_LINEAR] == "linear" &&
              query_temperatures[QKCTS_QUERY_TEMPERATURE_LOG_RATIO] == "log_ratio");
static_assert(points[QKCTS_BINARY64] == "binary64" && points[QKCTS_BINARY32] == "binary32" &&
              points[QKCTS_BINARY16] == "binary16" && points[QKCTS_BFLOAT16] == "bfloat16" &&
              points[QKCTS_E4M3FN] == "e4m3fn" && points[QKCTS_E5M2] == "e5m2");

bool always(const qkcts_contract&) {
  return true;
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
// i' = i + offset is used.
bool aligned(const qkcts_contract& c) {
  return c.mask.causal != 0 || c.mask.has_window != 0 || c.regions.chunk != 0 ||
         c.logits.alibi == QKCTS_ALIBI_RELATIVE || c.logits.alibi == QKCTS_ALIBI_SYMMETRIC;
}
bool has_offset(const qkcts_contract& c) {
  return aligned(c) && c.mask.alignment == QKCTS_OFFSET;
}
bool scaled(const qkcts_contract& c) {
  return rotates(c) && c.rotation.scaling != QKCTS_SCALING_NONE;
}
bool ramped(const qkcts_contract& c) {
  return rotates(c) && (c.rotation.scaling == QKCTS_SCALING_YARN || c.rotation.scaling == QKCTS_SCALING_LLAMA3);
}
bool yarn(const qkcts_contract& c) {
  return rotates(c) && c.rotation.scaling == QKCTS_SCALING_YARN;
}
bool learned_scale(const qkcts_contract& c) {
  return c.score.scale_form == QKCTS_SCALE_LEARNED_SCALAR;
}
bool tabled(const qkcts_contract& c) {
  return rotates(c) && c.rotation.angles == QKCTS_ANGLES_TABLE;
}
bool query_temperature(const qkcts_contract& c) {
  return c.logits.query_temperature != QKCTS_QUERY_TEMPERATURE_NONE;
}
bool causal(const qkcts_contract& c) {
  return c.mask.causal != 0;
}
bool projects(const qkcts_contract& c) {
  return c.projection.form != QKCTS_PROJECTION_NONE;
}
const qkcts_norm& q_norm(const qkcts_contract& c) {
  return c.q_norm;
}
const qkcts_norm& k_norm(const qkcts_contract& c) {
  return c.k_norm;
}
const qkcts_norm& v_norm(const qkcts_contract& c) {
  return c.v_norm;
}
const qkcts_norm& q_input_norm(const qkcts_contract& c) {
  return c.projection.q_input;
}
const qkcts_norm& k_input_norm(const qkcts_contract& c) {
  return c.projection.k_input;
}

using NormOf = const qkcts_norm& (*)(const qkcts_contract&);

template <NormOf norm>
bool applied(const qkcts_contract& c) {
  constexpr bool before_projection = norm == q_input_norm || norm == k_input_norm;
  return (!before_projection || projects(c)) && norm(c).applied != 0;
}
template <NormOf norm>
bool with_gain(const qkcts_contract& c) {
  return applied<norm>(c) && norm(c).gain != QKCTS_GAIN_NONE;
}
template <NormOf norm>
bool with_variance(const qkcts_contract& c) {
  return applied<norm>(c) && norm(c).center != 0;
}
bool has_q_norm_stage(const qkcts_contract& c) {
  return transforms(c.q_norm, c.q_range);
}
bool has_k_norm_stage(const qkcts_contract& c) {
  return transforms(c.k_norm, c.k_range);
}
bool has_v_norm_stage(const qkcts_contract& c) {
  return transforms(c.v_norm, c.v_range);
}
bool has_capped_stage(const qkcts_contract& c) {
  return (stages_of(c) & bit(QKCTS_STAGE_CAPPED)) != 0;
}
bool has_points(const qkcts_contract& c) {
  return has_rounding_points(c.rounding);
}

#define QKCTS_AT(member) offsetof(qkcts_contract, member)
using enum FieldType;
constexpr Presence later = Presence::beside_default;

// The fields of a norm, in the order of <qkcts/contract.h>.
template <NormOf norm>
constexpr std::array<ContractField, 9> norm_fields(Text section, std::uint32_t offset) {
  const auto at = [offset](std::size_t member) { return static_cast<std::uint32_t>(offset + member); };
  return {{
      {"QK-NORM-02", section, "center", flag, at(offsetof(qkcts_norm, center)), {}, applied<norm>},
      {"QK-NORM-03", section, "statistic", enumeration, at(offsetof(qkcts_norm, statistic)), statistics, applied<norm>},
      {"QK-EPS-02", section, "root", enumeration, at(offsetof(qkcts_norm, root)), roots, applied<norm>},
      {"QK-NORM-04", section, "axis", enumeration, at(offsetof(qkcts_norm, axis)), norm_axes, applied<norm>},
      {"QK-VAR-01", section, "variance", enumeration, at(offsetof(qkcts_norm, variance)), variances,
       with_variance<norm>},
      {"QK-GAIN-01", section, "gain", enumeration, at(offsetof(qkcts_norm, gain)), gains, applied<norm>},
      {"QK-GAIN-02", section, "gain_axes", enumeration, at(offsetof(qkcts_norm, gain_axes)), param_axes,
       with_gain<norm>},
      {"QK-GAIN-03", section, "bias_axes", enumeration, at(offsetof(qkcts_norm, bias_axes)), param_axes, applied<norm>},
      {"QK-EPS-01", section, "eps", number, at(offsetof(qkcts_norm, eps)), {}, applied<norm>},
  }};
}

// A norm before a projection knows no heads.
template <NormOf norm>
constexpr std::array<ContractField, 8> input_norm_fields(Text section, std::uint32_t offset) {
  std::array<ContractField, 8> fields{};
  std::size_t count = 0;
  for (const ContractField& field : norm_fields<norm>(section, offset))
    if (field.key != "axis") fields[count++] = field;
  return fields;
}

constexpr std::array<ContractField, 3> range_fields(Text section, std::uint32_t offset) {
  using Range = qkcts_norm_range;
  const auto at = [offset](std::size_t member) { return static_cast<std::uint32_t>(offset + member); };
  return {{
      {"QK-CLIP-01", section, "clip_before", optional_number, at(offsetof(Range, clip_before)), {}, always, later},
      {"QK-MULT-01", section, "multiplier", number, at(offsetof(Range, multiplier)), {}, always, later, 1},
      {"QK-CLIP-02", section, "clip_after", optional_number, at(offsetof(Range, clip_after)), {}, always, later},
  }};
}

constexpr auto rope_to_mask = std::to_array<ContractField>({
    {"QK-ROPE-01", "rope", "order", enumeration, QKCTS_AT(rope.order), rope_orders, always},
    {"QK-ROPE-02", "rope", "pairing", enumeration, QKCTS_AT(rope.pairing), rope_pairings, rotates},
    {"QK-ROPE-03", "rope", "span", enumeration, QKCTS_AT(rope.span), rope_spans, partial},
    {"QK-ROPE-04", "rope", "rotated", lanes, QKCTS_AT(rope.rotated), {}, rotates},
    {"QK-ROPE-05", "rope", "theta", number, QKCTS_AT(rope.theta), {}, rotates},
    {"QK-SCALE-01", "score", "scale_form", enumeration, QKCTS_AT(score.scale_form), scale_forms, always},
    {"QK-BIAS-01", "score", "bias_order", enumeration, QKCTS_AT(score.bias_order), bias_orders, always},
    {"QK-SCALE-02", "score", "scale_value", number, QKCTS_AT(score.scale_value), {}, has_scale_value},
    {"QK-TEMP-01", "score", "temperature", number, QKCTS_AT(score.temperature), {}, always, Presence::always, 1},
    {"QK-CAP-01", "score", "softcap", optional_number, QKCTS_AT(score.softcap), {}, always},
    {"QK-MASK-01", "mask", "causal", flag, QKCTS_AT(mask.causal), {}, always},
    {"QK-MASK-02", "mask", "alignment", enumeration, QKCTS_AT(mask.alignment), alignments, aligned},
    {"QK-MASK-03", "mask", "kv_lengths", flag, QKCTS_AT(mask.kv_lengths), {}, always},
    {"QK-MASK-04", "mask", "boolean", flag, QKCTS_AT(mask.boolean), {}, always},
    {"QK-EMPTY-01", "mask", "empty_row", enumeration, QKCTS_AT(mask.empty_row), empty_rows, hides_keys},
    {"QK-MASK-02", "mask", "offset", integer, QKCTS_AT(mask.offset), {}, has_offset},
});

constexpr auto later_clauses = std::to_array<ContractField>({
    {"QK-ROPE-07", "rope", "sense", enumeration, QKCTS_AT(rotation.sense), senses, rotates, later},
    {"QK-ROPE-08", "rope", "layout", enumeration, QKCTS_AT(rotation.layout), layouts, rotates, later},
    {"QK-ROPE-09", "rope", "angles", enumeration, QKCTS_AT(rotation.angles), angles, rotates, later},
    {"QK-ROPE-10", "rope", "scaling", enumeration, QKCTS_AT(rotation.scaling), scalings, rotates, later},
    {"QK-ROPE-10", "rope", "factor", number, QKCTS_AT(rotation.factor), {}, scaled},
    {"QK-ROPE-10", "rope", "original_length", number, QKCTS_AT(rotation.original_length), {}, ramped},
    {"QK-ROPE-10", "rope", "low", number, QKCTS_AT(rotation.low), {}, ramped},
    {"QK-ROPE-10", "rope", "high", number, QKCTS_AT(rotation.high), {}, ramped},
    {"QK-ROPE-11", "rope", "attention_factor", number, QKCTS_AT(rotation.attention_factor), {}, rotates, later, 1},
    {"QK-ROPE-10", "rope", "untruncated", flag, QKCTS_AT(rotation.untruncated), {}, yarn, later},
    {"QK-SCALE-03", "score", "scale_axes", enumeration, QKCTS_AT(logits.scale_axes), scale_axes, learned_scale, later},
    {"QK-SCALE-04",
     "score",
     "scale_exp_cap",
     optional_number,
     QKCTS_AT(logits.scale_exp_cap),
     {},
     learned_scale,
     later},
    {"QK-ALIBI-01", "score", "alibi", enumeration, QKCTS_AT(logits.alibi), alibis, always, later},
    {"QK-QTEMP-01", "score", "query_temperature", enumeration, QKCTS_AT(logits.query_temperature), query_temperatures,
     always, later},
    {"QK-QTEMP-02", "score", "query_alpha", number, QKCTS_AT(logits.query_alpha), {}, query_temperature},
    {"QK-QTEMP-02", "score", "query_period", number, QKCTS_AT(logits.query_period), {}, query_temperature},
    {"QK-QTEMP-02", "score", "query_shift", number, QKCTS_AT(logits.query_shift), {}, query_temperature},
    {"QK-SINK-01", "softmax", "sink", enumeration, QKCTS_AT(softmax.sink), sinks, always, later},
    {"QK-BASE-01", "softmax", "base", enumeration, QKCTS_AT(softmax.base), bases, always, later},
    {"QK-BASE-02", "softmax", "lse_base", enumeration, QKCTS_AT(softmax.lse_base), bases, always, later},
    {"QK-HIDDEN-01", "softmax", "hidden_values", enumeration, QKCTS_AT(softmax.hidden_values), hidden_values,
     hides_keys, later},
    {"QK-MASK-07", "mask", "chunk", optional_integer, QKCTS_AT(regions.chunk), {}, always, later},
    {"QK-MASK-08", "mask", "documents", flag, QKCTS_AT(regions.documents), {}, always, later},
    {"QK-MASK-09", "mask", "prefix", flag, QKCTS_AT(regions.prefix), {}, causal, later},
    {"QK-HEADS-02", "heads", "mapping", enumeration, QKCTS_AT(heads.mapping), head_mappings, always, later},
    {"QK-ROPE-12", "rope", "tables", enumeration, QKCTS_AT(rotation.tables), rope_tables, tabled, later},
});

constexpr auto projection_fields = std::to_array<ContractField>({
    {"QK-PROJ-01", "projection", "form", enumeration, QKCTS_AT(projection.form), projection_forms, always, later},
    {"QK-PROJ-02", "projection", "bias", flag, QKCTS_AT(projection.bias), {}, projects},
});

constexpr auto rounding_fields = std::to_array<ContractField>({
    {"QK-ROUND-01", "rounding", "q_projection", enumeration, QKCTS_AT(rounding.q.projection), points, projects, later},
    {"QK-ROUND-01", "rounding", "q_norm_root", enumeration, QKCTS_AT(rounding.q.root), points, applied<q_norm>, later},
    {"QK-ROUND-01", "rounding", "q_norm_reciprocal", enumeration, QKCTS_AT(rounding.q.reciprocal), points,
     applied<q_norm>, later},
    {"QK-ROUND-01", "rounding", "q_norm_unit", enumeration, QKCTS_AT(rounding.q.unit), points, applied<q_norm>, later},
    {"QK-ROUND-01", "rounding", "q_norm", enumeration, QKCTS_AT(rounding.q.norm), points, has_q_norm_stage, later},
    {"QK-ROUND-01", "rounding", "q_rope_product", enumeration, QKCTS_AT(rounding.q.rope_product), points, rotates,
     later},
    {"QK-ROUND-01", "rounding", "q_rope", enumeration, QKCTS_AT(rounding.q.rope), points, rotates, later},
    {"QK-ROUND-01", "rounding", "k_projection", enumeration, QKCTS_AT(rounding.k.projection), points, projects, later},
    {"QK-ROUND-01", "rounding", "k_norm_root", enumeration, QKCTS_AT(rounding.k.root), points, applied<k_norm>, later},
    {"QK-ROUND-01", "rounding", "k_norm_reciprocal", enumeration, QKCTS_AT(rounding.k.reciprocal), points,
     applied<k_norm>, later},
    {"QK-ROUND-01", "rounding", "k_norm_unit", enumeration, QKCTS_AT(rounding.k.unit), points, applied<k_norm>, later},
    {"QK-ROUND-01", "rounding", "k_norm", enumeration, QKCTS_AT(rounding.k.norm), points, has_k_norm_stage, later},
    {"QK-ROUND-01", "rounding", "k_rope_product", enumeration, QKCTS_AT(rounding.k.rope_product), points, rotates,
     later},
    {"QK-ROUND-01", "rounding", "k_rope", enumeration, QKCTS_AT(rounding.k.rope), points, rotates, later},
    {"QK-ROUND-01", "rounding", "v_norm_root", enumeration, QKCTS_AT(rounding.v.root), points, applied<v_norm>, later},
    {"QK-ROUND-01", "rounding", "v_norm_reciprocal", enumeration, QKCTS_AT(rounding.v.reciprocal), points,
     applied<v_norm>, later},
    {"QK-ROUND-01", "rounding", "v_norm_unit", enumeration, QKCTS_AT(rounding.v.unit), points, applied<v_norm>, later},
    {"QK-ROUND-01", "rounding", "v_norm", enumeration, QKCTS_AT(rounding.v.norm), points, has_v_norm_stage, later},
    {"QK-ROUND-01", "rounding", "scaled_q", enumeration, QKCTS_AT(rounding.scaled_q), points, always, later},
    {"QK-ROUND-01", "rounding", "scores", enumeration, QKCTS_AT(rounding.scores), points, always, later},
    {"QK-ROUND-01", "rounding", "capped", enumeration, QKCTS_AT(rounding.capped), points, has_capped_stage, later},
    {"QK-ROUND-01", "rounding", "probs", enumeration, QKCTS_AT(rounding.probs), points, always, later},
    {"QK-ROUND-01", "rounding", "output", enumeration, QKCTS_AT(rounding.output), points, always, later},
    {"QK-ROUND-02", "rounding", "saturate", flag, QKCTS_AT(rounding.saturate), {}, has_points, later},
    {"QK-ROUND-01", "rounding", "product", enumeration, QKCTS_AT(rounding.product), points, always, later},
    {"QK-ROUND-01", "rounding", "q_input_norm_unit", enumeration, QKCTS_AT(rounding.q_input.unit), points,
     applied<q_input_norm>, later},
    {"QK-ROUND-01", "rounding", "q_input_norm", enumeration, QKCTS_AT(rounding.q_input.norm), points,
     applied<q_input_norm>, later},
    {"QK-ROUND-01", "rounding", "k_input_norm_unit", enumeration, QKCTS_AT(rounding.k_input.unit), points,
     applied<k_input_norm>, later},
    {"QK-ROUND-01", "rounding", "k_input_norm", enumeration, QKCTS_AT(rounding.k_input.norm), points,
     applied<k_input_norm>, later},
});

template <std::size_t... lengths>
constexpr auto joined(const std::array<ContractField, lengths>&... parts) {
  std::array<ContractField, (lengths + ...)> all{};
  std::size_t count = 0;
  const auto append = [&](const auto& part) {
    for (const ContractField& field : part) all[count++] = field;
  };
  (append(parts), ...);
  return all;
}

constexpr auto table =
    joined(norm_fields<q_norm>("q_norm", QKCTS_AT(q_norm)), norm_fields<k_norm>("k_norm", QKCTS_AT(k_norm)),
           rope_to_mask, range_fields("q_norm", QKCTS_AT(q_range)), range_fields("k_norm", QKCTS_AT(k_range)),
           later_clauses, norm_fields<v_norm>("v_norm", QKCTS_AT(v_norm)), range_fields("v_norm", QKCTS_AT(v_range)),
           projection_fields, input_norm_fields<q_input_norm>("q_input_norm", QKCTS_AT(projection.q_input)),
           input_norm_fields<k_input_norm>("k_input_norm", QKCTS_AT(projection.k_input)), rounding_fields);

constexpr NormSection norms[] = {
    {"QK-NORM-01", "q_norm", QKCTS_AT(q_norm), Presence::always, always, always},
    {"QK-NORM-01", "k_norm", QKCTS_AT(k_norm), Presence::always, always, always},
    {"QK-VNORM-01", "v_norm", QKCTS_AT(v_norm), later, always, has_v_norm_stage},
    {"QK-PROJ-03", "q_input_norm", QKCTS_AT(projection.q_input), later, projects, applied<q_input_norm>},
    {"QK-PROJ-03", "k_input_norm", QKCTS_AT(projection.k_input), later, projects, applied<k_input_norm>},
};

#undef QKCTS_AT

constexpr std::array<Text, 5> kinds = {"none", "rms", "layer_norm", "l2", "centered_l2"};

}  // namespace

std::span<const ContractField> contract_field_table() {
  return table;
}

std::span<const NormSection> norm_sections() {
  return norms;
}

const qkcts_norm& norm_of(const qkcts_contract& terms, const NormSection& section) {
  return *reinterpret_cast<const qkcts_norm*>(reinterpret_cast<const char*>(&terms) + section.offset);
}

qkcts_norm& norm_of(qkcts_contract& terms, const NormSection& section) {
  return *reinterpret_cast<qkcts_norm*>(reinterpret_cast<char*>(&terms) + section.offset);
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
