// SPDX-License-Identifier: Apache-2.0
#include "adapters/sample_contract.hpp"

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

void draw_later_clauses(qkcts_contract& terms, std::mt19937_64& source, const qkcts_shape& shape) {
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

}  // namespace

std::int64_t pick(std::mt19937_64& source, std::int64_t first, std::int64_t last) {
  return first + static_cast<std::int64_t>(source() % static_cast<std::uint64_t>(last - first + 1));
}

std::string contract_text(const qkcts_contract& terms) {
  std::ostringstream out;
  for (const qkcts_norm* norm : {&terms.q_norm, &terms.k_norm}) {
    const qkcts_norm_range& range = norm == &terms.q_norm ? terms.q_range : terms.k_range;
    out << "norm{" << norm->applied << " center " << norm->center << " stat " << norm->statistic << " root "
        << norm->root << " axis " << norm->axis << " var " << norm->variance << " gain " << norm->gain << '/'
        << norm->gain_axes << " bias " << norm->bias_axes << " eps " << norm->eps << " clip " << range.clip_before
        << ' ' << range.clip_after << " times " << range.multiplier << "} ";
  }
  const qkcts_rotation& turn = terms.rotation;
  const qkcts_logits& logits = terms.logits;
  out << "rope{" << terms.rope.order << ' ' << terms.rope.pairing << ' ' << terms.rope.span << ' ' << terms.rope.rotated
      << " sense " << turn.sense << " layout " << turn.layout << " angles " << turn.angles << " scaling "
      << turn.scaling << ' ' << turn.factor << ' ' << turn.original_length << ' ' << turn.low << ' ' << turn.high << ' '
      << turn.untruncated << " factor " << turn.attention_factor << "} score{form " << terms.score.scale_form
      << " axes " << logits.scale_axes << " exp " << logits.scale_exp_cap << " bias " << terms.score.bias_order
      << " value " << terms.score.scale_value << " T " << terms.score.temperature << " cap " << terms.score.softcap
      << " alibi " << logits.alibi << " query " << logits.query_temperature << ' ' << logits.query_alpha << ' '
      << logits.query_period << ' ' << logits.query_shift << "} softmax{sink " << terms.softmax.sink << " base "
      << terms.softmax.base << " lse " << terms.softmax.lse_base << " hidden " << terms.softmax.hidden_values
      << "} mask{causal " << terms.mask.causal << " align " << terms.mask.alignment << " len " << terms.mask.kv_lengths
      << " bool " << terms.mask.boolean << " empty " << terms.mask.empty_row << " window " << terms.mask.has_window
      << ' ' << terms.mask.window_left << ' ' << terms.mask.window_right << " offset " << terms.mask.offset << " chunk "
      << terms.regions.chunk << " documents " << terms.regions.documents << " prefix " << terms.regions.prefix
      << "} heads " << terms.heads.mapping;
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
  if (version == ContractVersion::v1_1) draw_later_clauses(terms, source, shape);
  return terms;
}

std::uint32_t existing_stages(const qkcts_contract& terms) {
  const auto kept = [](const qkcts_norm& norm, const qkcts_norm_range& range) {
    return norm.applied == 0 && range.clip_before == 0 && range.multiplier == 0 && range.clip_after == 0;
  };
  std::uint32_t stages = (1u << QKCTS_STAGE_COUNT) - 1;
  if (kept(terms.q_norm, terms.q_range)) stages &= ~(1u << QKCTS_STAGE_Q_NORM);
  if (kept(terms.k_norm, terms.k_range)) stages &= ~(1u << QKCTS_STAGE_K_NORM);
  if (terms.rope.order == QKCTS_ROPE_NONE) stages &= ~(1u << QKCTS_STAGE_Q_ROPE | 1u << QKCTS_STAGE_K_ROPE);
  return stages;
}

}  // namespace qkcts
