// SPDX-License-Identifier: Apache-2.0
#include "adapters/sample_contract.hpp"

#include <algorithm>
#include <sstream>

namespace qkcts {

namespace {

qkcts_norm random_norm(std::mt19937_64& source) {
  qkcts_norm norm{};
  norm.applied = pick(source, 0, 3) != 0 ? 1 : 0;
  norm.center = static_cast<std::uint32_t>(pick(source, 0, 1));
  norm.statistic = static_cast<std::uint32_t>(pick(source, 0, 1));
  norm.root = static_cast<std::uint32_t>(pick(source, 0, 3));
  norm.axis = static_cast<std::uint32_t>(pick(source, 0, 1));
  norm.variance = static_cast<std::uint32_t>(pick(source, 0, 1));
  norm.gain = static_cast<std::uint32_t>(pick(source, 0, 2));
  norm.gain_axes = norm.gain == QKCTS_GAIN_NONE ? 0u : static_cast<std::uint32_t>(pick(source, 1, 5));
  norm.bias_axes = static_cast<std::uint32_t>(pick(source, 0, 5));
  norm.eps = one_of(source, {1e-6, 1e-3, 0.1, 3.0});
  return norm;
}

// One time in three the value, else the default.
template <class Value>
Value sometimes(std::mt19937_64& source, Value value, Value standard = {}) {
  return source() % 3 == 0 ? value : standard;
}

qkcts_norm_range random_range(std::mt19937_64& source) {
  qkcts_norm_range range{};
  range.clip_before = sometimes(source, one_of(source, {0.9, 1.25}));
  range.multiplier = one_of(source, {0.0, 1.0, 0.6, 1.7});
  range.clip_after = sometimes(source, one_of(source, {0.75, 2.1}));
  return range;
}

qkcts_rotation random_rotation(std::mt19937_64& source, const qkcts_rope& rope, std::int64_t lanes) {
  qkcts_rotation rotation{};
  rotation.sense = sometimes(source, 1u);
  if (rope.pairing == QKCTS_INTERLEAVED) rotation.layout = static_cast<std::uint32_t>(pick(source, 0, 1));
  rotation.angles = static_cast<std::uint32_t>(pick(source, 0, 1));
  rotation.scaling = static_cast<std::uint32_t>(pick(source, 0, 5));
  if (rotation.scaling == QKCTS_SCALING_NTK && lanes == 2) rotation.scaling = QKCTS_SCALING_LINEAR;
  const bool share = rotation.scaling == QKCTS_SCALING_PROPORTIONAL;
  rotation.factor = share ? one_of(source, {0.25, 0.5, 1.0}) : one_of(source, {0.5, 4.0, 8.0});
  rotation.original_length = one_of(source, {40.0, 64.0, 4096.0});
  rotation.low = one_of(source, {0.5, 1.0});
  rotation.high = one_of(source, {4.0, 32.0});
  rotation.attention_factor = sometimes(source, one_of(source, {1.25, 0.8}));
  rotation.untruncated = static_cast<std::uint32_t>(pick(source, 0, 1));
  return rotation;
}

qkcts_logits random_logits(std::mt19937_64& source) {
  qkcts_logits logits{};
  logits.scale_axes = static_cast<std::uint32_t>(pick(source, 0, 1));
  logits.scale_exp_cap = sometimes(source, one_of(source, {0.5, 2.5}));
  logits.alibi = static_cast<std::uint32_t>(pick(source, 0, 3));
  logits.query_temperature = sometimes(source, 1u);
  logits.query_alpha = one_of(source, {0.0, 0.3});
  logits.query_period = one_of(source, {1.0, 4.0});
  logits.query_shift = one_of(source, {0.0, 1.0, 5.0});
  return logits;
}

void draw_clauses_of_1_1(qkcts_contract& terms, std::mt19937_64& source, const qkcts_shape& shape) {
  terms.q_range = random_range(source);
  terms.k_range = random_range(source);
  if (terms.rope.order != QKCTS_ROPE_NONE)
    terms.rotation = random_rotation(source, terms.rope, terms.rope.rotated == 0 ? shape.head_dim : terms.rope.rotated);
  terms.logits = random_logits(source);
  terms.softmax.base = sometimes(source, 1u);
  terms.softmax.lse_base = static_cast<std::uint32_t>(pick(source, 0, 1));
  terms.softmax.sink = static_cast<std::uint32_t>(pick(source, 0, terms.softmax.base == QKCTS_BASE_E ? 2 : 1));
  // An empty row that is the mean of all values has no use for values that are none.
  if (terms.mask.empty_row != QKCTS_EMPTY_UNIFORM)
    terms.softmax.hidden_values = static_cast<std::uint32_t>(pick(source, 0, 1));
  terms.regions.chunk = sometimes<std::int64_t>(source, one_of<std::int64_t>(source, {5, 16}));
  terms.regions.documents = sometimes(source, 1u);
  terms.regions.prefix = terms.mask.causal != 0 ? static_cast<std::uint32_t>(pick(source, 0, 1)) : 0;
  terms.heads.mapping = static_cast<std::uint32_t>(pick(source, 0, 1));
}

// A norm before a projection: one row, so one of the axes that a row has.
qkcts_norm random_row_norm(std::mt19937_64& source) {
  qkcts_norm norm = random_norm(source);
  norm.axis = QKCTS_AXIS_FULL_WIDTH;
  const auto axes = [&] { return one_of<std::uint32_t>(source, {QKCTS_AXES_SCALAR, QKCTS_AXES_FULL_WIDTH}); };
  norm.gain_axes = norm.gain == QKCTS_GAIN_NONE ? 0u : axes();
  norm.bias_axes = sometimes(source, axes());
  return norm;
}

// A point with one of the formats, or none. Roots and their reciprocals have formats of a wider range: the divisor
// is neither 0 nor infinite then.
std::uint32_t random_point(std::mt19937_64& source, std::initializer_list<std::uint32_t> formats) {
  return sometimes(source, one_of(source, formats));
}

constexpr std::initializer_list<std::uint32_t> any_format = {QKCTS_BINARY32, QKCTS_BINARY16, QKCTS_BFLOAT16,
                                                             QKCTS_E4M3FN, QKCTS_E5M2};
constexpr std::initializer_list<std::uint32_t> wide_format = {QKCTS_BINARY32, QKCTS_BFLOAT16};

// The points that a norm passes before its end only beside one at its end, and so the products of a rotation.
qkcts_vector_rounding random_points(std::mt19937_64& source, const qkcts_norm& norm, const qkcts_norm_range& range) {
  qkcts_vector_rounding points{};
  const bool kept = norm.applied == 0 && range.clip_before == 0 && range.multiplier == 0 && range.clip_after == 0;
  points.norm = kept ? 0 : random_point(source, any_format);
  if (points.norm == 0 || norm.applied == 0) return points;
  points.root = random_point(source, {QKCTS_BINARY32, QKCTS_BINARY16, QKCTS_BFLOAT16});
  points.reciprocal = random_point(source, wide_format);
  points.unit = random_point(source, any_format);
  return points;
}

qkcts_rounding random_rounding(std::mt19937_64& source, const qkcts_contract& terms) {
  qkcts_rounding rounding{};
  rounding.q = random_points(source, terms.q_norm, terms.q_range);
  rounding.k = random_points(source, terms.k_norm, terms.k_range);
  rounding.v = random_points(source, terms.v_norm, terms.v_range);
  for (qkcts_vector_rounding* side : {&rounding.q, &rounding.k}) {
    if (terms.projection.form != QKCTS_PROJECTION_NONE) side->projection = random_point(source, any_format);
    if (terms.rope.order == QKCTS_ROPE_NONE) continue;
    side->rope = random_point(source, any_format);
    if (side->rope != 0) side->rope_product = random_point(source, any_format);
  }
  rounding.scaled_q = random_point(source, any_format);
  rounding.scores = random_point(source, any_format);
  const bool changed =
      terms.score.softcap > 0 || terms.score.bias_order != QKCTS_BIAS_NONE || terms.logits.alibi != QKCTS_ALIBI_NONE;
  rounding.capped = changed ? random_point(source, any_format) : 0;
  rounding.probs = random_point(source, any_format);
  rounding.output = random_point(source, any_format);
  rounding.saturate = 1;             // without it, what overflows is no number
  std::mt19937_64 further = source;  // so that what comes after stays as it is drawn
  for (const auto& [points, norm] : {std::pair(&rounding.q_input, &terms.projection.q_input),
                                     std::pair(&rounding.k_input, &terms.projection.k_input)}) {
    if (terms.projection.form == QKCTS_PROJECTION_NONE || norm->applied == 0) continue;
    points->norm = random_point(further, any_format);
    if (points->norm != 0) points->unit = random_point(further, any_format);
  }
  if (rounding.scaled_q == 0) rounding.product = random_point(further, any_format);
  return rounding;
}

void draw_clauses_of_1_2(qkcts_contract& terms, std::mt19937_64& source, const qkcts_shape& shape) {
  terms.v_norm = random_norm(source);
  terms.v_range = random_range(source);
  terms.projection.form = static_cast<std::uint32_t>(pick(source, 0, 1));
  if (terms.projection.form != QKCTS_PROJECTION_NONE) {
    terms.projection.bias = static_cast<std::uint32_t>(pick(source, 0, 1));
    terms.projection.q_input = random_row_norm(source);
    terms.projection.k_input = random_row_norm(source);
  }
  const bool tables = terms.rope.order != QKCTS_ROPE_NONE && terms.rotation.angles == QKCTS_ANGLES_TABLE;
  if (tables && shape.q_heads == shape.kv_heads) terms.rotation.tables = static_cast<std::uint32_t>(pick(source, 0, 1));
  if (terms.logits.query_temperature != QKCTS_QUERY_TEMPERATURE_NONE)
    terms.logits.query_temperature = static_cast<std::uint32_t>(pick(source, 1, 2));
  if (source() % 2 == 0) terms.rounding = random_rounding(source, terms);
}

// What a projection, a rotation or the mean leaves may have cancelled, and a norm multiplies its rounding errors by up
// to 1 / eps. The inputs themselves are exact.
void keep_conditioned(qkcts_contract& terms) {
  const bool moved = terms.projection.form != QKCTS_PROJECTION_NONE || terms.rope.order == QKCTS_ROPE_THEN_NORM;
  for (qkcts_norm* norm : {&terms.q_norm, &terms.k_norm})
    if (moved) norm->eps = std::max(norm->eps, 0.1);
  for (qkcts_norm* norm :
       {&terms.q_norm, &terms.k_norm, &terms.v_norm, &terms.projection.q_input, &terms.projection.k_input})
    if (norm->center != 0) norm->eps = std::max(norm->eps, 0.1);
}

std::string norm_text(const qkcts_norm& norm, const qkcts_norm_range& range) {
  std::ostringstream out;
  out << "norm{" << norm.applied << " center " << norm.center << " stat " << norm.statistic << " root " << norm.root
      << " axis " << norm.axis << " var " << norm.variance << " gain " << norm.gain << '/' << norm.gain_axes << " bias "
      << norm.bias_axes << " eps " << norm.eps << " clip " << range.clip_before << ' ' << range.clip_after << " times "
      << range.multiplier << "} ";
  return out.str();
}

std::string points_text(const qkcts_rounding& rounding) {
  std::ostringstream out;
  out << " rounding{";
  for (const qkcts_vector_rounding* side : {&rounding.q, &rounding.k, &rounding.v})
    out << side->projection << side->root << side->reciprocal << side->unit << side->norm << side->rope_product
        << side->rope << ' ';
  for (const qkcts_input_rounding* input : {&rounding.q_input, &rounding.k_input})
    out << input->unit << input->norm << ' ';
  out << rounding.scaled_q << rounding.product << rounding.scores << rounding.capped << rounding.probs
      << rounding.output << " saturate " << rounding.saturate << '}';
  return out.str();
}

}  // namespace

std::int64_t pick(std::mt19937_64& source, std::int64_t first, std::int64_t last) {
  return first + static_cast<std::int64_t>(source() % static_cast<std::uint64_t>(last - first + 1));
}

std::string contract_text(const qkcts_contract& terms) {
  std::ostringstream out;
  out << norm_text(terms.q_norm, terms.q_range) << norm_text(terms.k_norm, terms.k_range)
      << norm_text(terms.v_norm, terms.v_range);
  if (terms.projection.form != QKCTS_PROJECTION_NONE)
    out << "projection{bias " << terms.projection.bias << ' ' << norm_text(terms.projection.q_input, {})
        << norm_text(terms.projection.k_input, {}) << "} ";
  const qkcts_rotation& turn = terms.rotation;
  const qkcts_logits& logits = terms.logits;
  out << "rope{" << terms.rope.order << ' ' << terms.rope.pairing << ' ' << terms.rope.span << ' ' << terms.rope.rotated
      << " sense " << turn.sense << " layout " << turn.layout << " angles " << turn.angles << " scaling "
      << turn.scaling << ' ' << turn.factor << ' ' << turn.original_length << ' ' << turn.low << ' ' << turn.high << ' '
      << turn.untruncated << " factor " << turn.attention_factor << " tables " << turn.tables << "} score{form "
      << terms.score.scale_form << " axes " << logits.scale_axes << " exp " << logits.scale_exp_cap << " bias "
      << terms.score.bias_order << " value " << terms.score.scale_value << " T " << terms.score.temperature << " cap "
      << terms.score.softcap << " alibi " << logits.alibi << " query " << logits.query_temperature << ' '
      << logits.query_alpha << ' ' << logits.query_period << ' ' << logits.query_shift << "} softmax{sink "
      << terms.softmax.sink << " base " << terms.softmax.base << " lse " << terms.softmax.lse_base << " hidden "
      << terms.softmax.hidden_values << "} mask{causal " << terms.mask.causal << " align " << terms.mask.alignment
      << " len " << terms.mask.kv_lengths << " bool " << terms.mask.boolean << " empty " << terms.mask.empty_row
      << " window " << terms.mask.has_window << ' ' << terms.mask.window_left << ' ' << terms.mask.window_right
      << " offset " << terms.mask.offset << " chunk " << terms.regions.chunk << " documents " << terms.regions.documents
      << " prefix " << terms.regions.prefix << "} heads " << terms.heads.mapping << points_text(terms.rounding);
  return out.str();
}

qkcts_contract plain_contract() {
  qkcts_contract terms{};
  terms.struct_size = sizeof terms;
  terms.version = QKCTS_CONTRACT_VERSION;
  return terms;
}

qkcts_contract random_contract(std::mt19937_64& source, const qkcts_shape& shape, ContractVersion version) {
  qkcts_contract terms = plain_contract();
  terms.q_norm = random_norm(source);
  terms.k_norm = random_norm(source);
  if (shape.head_dim >= 2) {
    terms.rope.order = static_cast<std::uint32_t>(pick(source, 0, 2));
    terms.rope.pairing = static_cast<std::uint32_t>(pick(source, 0, 1));
    terms.rope.span = static_cast<std::uint32_t>(pick(source, 0, 1));
    terms.rope.rotated = static_cast<std::uint32_t>(2 * pick(source, 0, shape.head_dim / 2));
    if (terms.rope.rotated == 0 && shape.head_dim % 2 != 0) terms.rope.rotated = 2;
    terms.rope.theta = 100;
  }
  terms.score.scale_form = static_cast<std::uint32_t>(pick(source, 0, 3));
  terms.score.scale_value = one_of(source, {0.125, 0.3, 2.0});
  terms.score.temperature = one_of(source, {0.0, 1.0, 0.5, 2.0});
  terms.score.softcap = one_of(source, {0.0, 0.7, 5.0});
  terms.score.bias_order = static_cast<std::uint32_t>(pick(source, 0, 2));
  terms.mask.causal = static_cast<std::uint32_t>(pick(source, 0, 1));
  terms.mask.alignment = static_cast<std::uint32_t>(pick(source, 0, 3));
  terms.mask.kv_lengths = static_cast<std::uint32_t>(pick(source, 0, 1));
  terms.mask.boolean = static_cast<std::uint32_t>(pick(source, 0, 1));
  terms.mask.empty_row = static_cast<std::uint32_t>(pick(source, 0, 2));
  terms.mask.has_window = static_cast<std::uint32_t>(pick(source, 0, 1));
  terms.mask.window_left = pick(source, -1, 40);
  terms.mask.window_right = pick(source, -1, 10);
  terms.mask.offset = pick(source, -5, 20);
  if (version != ContractVersion::v1_0) draw_clauses_of_1_1(terms, source, shape);
  if (version == ContractVersion::v1_2) draw_clauses_of_1_2(terms, source, shape);
  keep_conditioned(terms);
  return terms;
}

std::uint32_t existing_stages(const qkcts_contract& terms) {
  const auto kept = [](const qkcts_norm& norm, const qkcts_norm_range& range) {
    return norm.applied == 0 && range.clip_before == 0 && range.multiplier == 0 && range.clip_after == 0;
  };
  std::uint32_t stages = (1u << QKCTS_STAGE_COUNT) - 1;
  if (kept(terms.q_norm, terms.q_range)) stages &= ~(1u << QKCTS_STAGE_Q_NORM);
  if (kept(terms.k_norm, terms.k_range)) stages &= ~(1u << QKCTS_STAGE_K_NORM);
  if (kept(terms.v_norm, terms.v_range)) stages &= ~(1u << QKCTS_STAGE_V_NORM);
  if (terms.projection.form == QKCTS_PROJECTION_NONE) stages &= ~(1u << QKCTS_STAGE_Q_PROJ | 1u << QKCTS_STAGE_K_PROJ);
  if (terms.rope.order == QKCTS_ROPE_NONE) stages &= ~(1u << QKCTS_STAGE_Q_ROPE | 1u << QKCTS_STAGE_K_ROPE);
  return stages;
}

}  // namespace qkcts
