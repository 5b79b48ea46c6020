// SPDX-License-Identifier: Apache-2.0
// Rules of a contract that neither a JSON schema nor a C type can say.
#include "conformance/contract.hpp"

#include <cmath>

#include <fmt/format.h>

namespace qkcts {
namespace {

constexpr std::int64_t farthest = std::int64_t{1} << 40;  // window and offset: no sum of indices can overflow

std::string norm_fault(std::string_view name, const qkcts_norm& norm) {
  if (norm.applied > 1) return fmt::format("{}.applied is {}, must be 0 or 1", name, norm.applied);
  if (norm.applied == 0) return {};
  if (norm.center > 1) return fmt::format("{}.center is {}, must be 0 or 1", name, norm.center);
  if (norm.statistic > QKCTS_SUM_SQUARE) return fmt::format("{}.statistic {} is unknown", name, norm.statistic);
  if (norm.root > QKCTS_MAX_INSIDE) return fmt::format("{}.root {} is unknown", name, norm.root);
  if (norm.axis > QKCTS_AXIS_FULL_WIDTH) return fmt::format("{}.axis {} is unknown", name, norm.axis);
  if (norm.variance > QKCTS_VARIANCE_ONE_PASS_CLIPPED)
    return fmt::format("{}.variance {} is unknown", name, norm.variance);
  if (norm.gain > QKCTS_GAIN_ONE_PLUS_W) return fmt::format("{}.gain {} is unknown", name, norm.gain);
  if (norm.gain_axes > QKCTS_AXES_FULL_WIDTH) return fmt::format("{}.gain_axes {} is unknown", name, norm.gain_axes);
  if (norm.bias_axes > QKCTS_AXES_FULL_WIDTH) return fmt::format("{}.bias_axes {} is unknown", name, norm.bias_axes);
  if ((norm.gain == QKCTS_GAIN_NONE) != (norm.gain_axes == QKCTS_AXES_NONE))
    return fmt::format("{}.gain_axes must be given exactly when there is a gain", name);
  if (!std::isfinite(norm.eps) || norm.eps < 0)
    return fmt::format("{}.eps is {}, must be finite and >= 0", name, norm.eps);
  if (norm.variance == QKCTS_VARIANCE_ONE_PASS_CLIPPED && (norm.center == 0 || norm.statistic != QKCTS_MEAN_SQUARE))
    return fmt::format("{}.variance one_pass_clipped needs a centred mean_square", name);
  return {};
}

std::string rope_fault(const qkcts_rope& rope) {
  if (rope.order > QKCTS_ROPE_THEN_NORM) return fmt::format("rope.order {} is unknown", rope.order);
  if (rope.order == QKCTS_ROPE_NONE) return {};
  if (rope.pairing > QKCTS_INTERLEAVED) return fmt::format("rope.pairing {} is unknown", rope.pairing);
  if (rope.span > QKCTS_SPAN_LAST) return fmt::format("rope.span {} is unknown", rope.span);
  if (rope.rotated % 2 != 0) return fmt::format("rope.rotated is {}, must be even: lanes turn in pairs", rope.rotated);
  if (!std::isfinite(rope.theta) || rope.theta <= 1)
    return fmt::format("rope.theta is {}, must be finite and > 1", rope.theta);
  return {};
}

std::string score_fault(const qkcts_score& score) {
  if (score.scale_form > QKCTS_SCALE_LEARNED_SCALAR)
    return fmt::format("score.scale_form {} is unknown", score.scale_form);
  if (score.bias_order > QKCTS_BIAS_AFTER_SOFTCAP)
    return fmt::format("score.bias_order {} is unknown", score.bias_order);
  if ((score.scale_form == QKCTS_SCALE_CONSTANT || score.scale_form == QKCTS_SCALE_INV_SQRT_SCALAR) &&
      (!std::isfinite(score.scale_value) || score.scale_value <= 0))
    return fmt::format("score.scale_value is {}, must be finite and > 0", score.scale_value);
  if (!std::isfinite(score.temperature) || score.temperature < 0)
    return fmt::format("score.temperature is {}, must be finite and > 0", score.temperature);
  if (!std::isfinite(score.softcap) || score.softcap < 0)
    return fmt::format("score.softcap is {}, must be finite and > 0, or absent", score.softcap);
  return {};
}

bool absent_or_positive(double value) {
  return value == 0 || (std::isfinite(value) && value > 0);
}

std::string range_fault(std::string_view name, const qkcts_norm_range& range) {
  if (!absent_or_positive(range.clip_before))
    return fmt::format("{}.clip_before is {}, must be finite and > 0, or absent", name, range.clip_before);
  if (!absent_or_positive(range.multiplier))
    return fmt::format("{}.multiplier is {}, must be finite and > 0", name, range.multiplier);
  if (!absent_or_positive(range.clip_after))
    return fmt::format("{}.clip_after is {}, must be finite and > 0, or absent", name, range.clip_after);
  return {};
}

std::string rotation_fault(const qkcts_rope& rope, const qkcts_rotation& rotation) {
  if (rope.order == QKCTS_ROPE_NONE) return {};
  if (rotation.sense > QKCTS_SENSE_NEGATIVE) return fmt::format("rope.sense {} is unknown", rotation.sense);
  if (rotation.layout > QKCTS_LAYOUT_DEINTERLEAVED) return fmt::format("rope.layout {} is unknown", rotation.layout);
  if (rotation.angles > QKCTS_ANGLES_COMPUTED) return fmt::format("rope.angles {} is unknown", rotation.angles);
  if (rotation.scaling > QKCTS_SCALING_PROPORTIONAL) return fmt::format("rope.scaling {} is unknown", rotation.scaling);
  if (rotation.tables > QKCTS_TABLES_PER_HEAD) return fmt::format("rope.tables {} is unknown", rotation.tables);
  if (rotation.layout == QKCTS_LAYOUT_DEINTERLEAVED && rope.pairing != QKCTS_INTERLEAVED)
    return "rope.layout deinterleaved needs rope.pairing interleaved";
  if (!absent_or_positive(rotation.attention_factor))
    return fmt::format("rope.attention_factor is {}, must be finite and > 0", rotation.attention_factor);
  if (rotation.scaling == QKCTS_SCALING_NONE) return {};
  if (!std::isfinite(rotation.factor) || rotation.factor <= 0)
    return fmt::format("rope.factor is {}, must be finite and > 0", rotation.factor);
  if (rotation.scaling == QKCTS_SCALING_PROPORTIONAL && rotation.factor > 1)
    return fmt::format("rope.factor is {}, must be at most 1: the share of pairs that turn", rotation.factor);
  if (rotation.scaling == QKCTS_SCALING_NTK && rope.rotated == 2)
    return "rope.scaling ntk needs more than one pair: its exponent is R / (R - 2)";
  if (rotation.scaling != QKCTS_SCALING_YARN && rotation.scaling != QKCTS_SCALING_LLAMA3) return {};
  if (!std::isfinite(rotation.original_length) || rotation.original_length <= 0)
    return fmt::format("rope.original_length is {}, must be finite and > 0", rotation.original_length);
  if (!std::isfinite(rotation.high) || !(rotation.low > 0) || !(rotation.high > rotation.low))
    return fmt::format("rope.low {} and rope.high {} must satisfy 0 < low < high", rotation.low, rotation.high);
  return {};
}

bool is_integer(double value) {
  return std::isfinite(value) && value == std::floor(value) && std::abs(value) <= 0x1p53;
}

std::string logits_fault(const qkcts_contract& terms) {
  const qkcts_logits& logits = terms.logits;
  if (logits.alibi > QKCTS_ALIBI_LAST_KEY) return fmt::format("score.alibi {} is unknown", logits.alibi);
  if (logits.query_temperature > QKCTS_QUERY_TEMPERATURE_LOG_RATIO)
    return fmt::format("score.query_temperature {} is unknown", logits.query_temperature);
  if (terms.score.scale_form == QKCTS_SCALE_LEARNED_SCALAR) {
    if (logits.scale_axes > QKCTS_SCALE_PER_HEAD)
      return fmt::format("score.scale_axes {} is unknown", logits.scale_axes);
    if (!absent_or_positive(logits.scale_exp_cap))
      return fmt::format("score.scale_exp_cap is {}, must be finite and > 0, or absent", logits.scale_exp_cap);
  }
  if (logits.query_temperature == QKCTS_QUERY_TEMPERATURE_NONE) return {};
  if (!std::isfinite(logits.query_alpha) || logits.query_alpha < 0)
    return fmt::format("score.query_alpha is {}, must be finite and >= 0", logits.query_alpha);
  if (!is_integer(logits.query_period) || logits.query_period < 1)
    return fmt::format("score.query_period is {}, must be an integer in 1..2^53", logits.query_period);
  if (!is_integer(logits.query_shift) || logits.query_shift < 0)
    return fmt::format("score.query_shift is {}, must be an integer in 0..2^53", logits.query_shift);
  return {};
}

std::string softmax_fault(const qkcts_softmax& softmax) {
  if (softmax.sink > QKCTS_SINK_POST_SCALE) return fmt::format("softmax.sink {} is unknown", softmax.sink);
  if (softmax.base > QKCTS_BASE_TWO) return fmt::format("softmax.base {} is unknown", softmax.base);
  if (softmax.lse_base > QKCTS_BASE_TWO) return fmt::format("softmax.lse_base {} is unknown", softmax.lse_base);
  if (softmax.hidden_values > QKCTS_HIDDEN_PROPAGATED)
    return fmt::format("softmax.hidden_values {} is unknown", softmax.hidden_values);
  if (softmax.base == QKCTS_BASE_TWO && softmax.sink == QKCTS_SINK_POST_SCALE)
    return "softmax.sink post_scale is defined in base e only";
  return {};
}

// The mean over all values of a batch entry would include those that nothing may depend on.
std::string hidden_fault(const qkcts_contract& terms) {
  const bool empty_means_all = terms.mask.empty_row == QKCTS_EMPTY_UNIFORM && terms.softmax.sink != QKCTS_SINK_COLUMN;
  if (terms.softmax.hidden_values == QKCTS_HIDDEN_EXCLUDED && hides_keys(terms) && empty_means_all)
    return "softmax.hidden_values excluded contradicts mask.empty_row uniform, a mean over hidden values too";
  return {};
}

std::string mask_fault(const qkcts_mask& mask, const qkcts_regions& regions, std::uint32_t alibi) {
  if (mask.causal > 1 || mask.kv_lengths > 1 || mask.boolean > 1 || mask.has_window > 1)
    return "mask.causal, kv_lengths, boolean and has_window must be 0 or 1";
  if (mask.empty_row > QKCTS_EMPTY_UNIFORM) return fmt::format("mask.empty_row {} is unknown", mask.empty_row);
  if (regions.chunk < 0 || regions.chunk > farthest)
    return fmt::format("mask.chunk is {}, must lie in 1..2^40, or be absent", regions.chunk);
  if (regions.documents > 1 || regions.prefix > 1) return "mask.documents and prefix must be 0 or 1";
  if (regions.prefix != 0 && mask.causal == 0) return "mask.prefix needs mask.causal: it is a union with it";
  // Also where nothing asks for the alignment: whoever forms i' all the same needs the lengths.
  if (mask.alignment == QKCTS_BOTTOM_RIGHT_VALID && mask.kv_lengths == 0)
    return "mask.alignment bottom_right_valid needs mask.kv_lengths";
  const bool distances = alibi == QKCTS_ALIBI_RELATIVE || alibi == QKCTS_ALIBI_SYMMETRIC;
  if (mask.causal == 0 && mask.has_window == 0 && regions.chunk == 0 && !distances) return {};
  if (mask.alignment > QKCTS_OFFSET) return fmt::format("mask.alignment {} is unknown", mask.alignment);
  if (mask.alignment == QKCTS_OFFSET && std::abs(static_cast<double>(mask.offset)) > static_cast<double>(farthest))
    return fmt::format("mask.offset is {}, must lie within +-2^40", mask.offset);
  if (mask.has_window != 0 && (mask.window_left > farthest || mask.window_right > farthest))
    return "mask.window is wider than 2^40";
  if (mask.has_window != 0 && mask.window_left < 0 && mask.window_right < 0)
    return "mask.window is unlimited on both sides: leave it out";
  return {};
}

// The norm before a projection runs over a whole row, so the axes of one head have no meaning there.
std::string input_norm_fault(std::string_view name, const qkcts_norm& norm) {
  if (std::string fault = norm_fault(name, norm); !fault.empty() || norm.applied == 0) return fault;
  for (const std::uint32_t axes : {norm.gain_axes, norm.bias_axes})
    if (axes != QKCTS_AXES_NONE && axes != QKCTS_AXES_SCALAR && axes != QKCTS_AXES_FULL_WIDTH)
      return fmt::format("{}.gain_axes and bias_axes must be full_width or scalar: there are no heads yet", name);
  return {};
}

std::string projection_fault(const qkcts_projection& projection) {
  if (projection.form > QKCTS_PROJECTION_LINEAR) return fmt::format("projection.form {} is unknown", projection.form);
  if (projection.form == QKCTS_PROJECTION_NONE) return {};
  if (projection.bias > 1) return fmt::format("projection.bias is {}, must be 0 or 1", projection.bias);
  if (std::string fault = input_norm_fault("q_input_norm", projection.q_input); !fault.empty()) return fault;
  return input_norm_fault("k_input_norm", projection.k_input);
}

// A part of a product is rounded only where the product is: see QK-ROUND-01.
std::string vector_rounding_fault(char side, const qkcts_vector_rounding& points) {
  for (const std::uint32_t point :
       {points.projection, points.root, points.reciprocal, points.unit, points.norm, points.rope_product, points.rope})
    if (point > QKCTS_E5M2) return fmt::format("rounding of {}: format {} is unknown", side, point);
  if (points.norm == 0 && (points.root != 0 || points.reciprocal != 0 || points.unit != 0))
    return fmt::format("rounding.{0}_norm is missing: {0}_norm_root, {0}_norm_reciprocal and {0}_norm_unit need it",
                       side);
  if (points.rope == 0 && points.rope_product != 0)
    return fmt::format("rounding.{0}_rope is missing: {0}_rope_product needs it", side);
  return {};
}

std::string input_rounding_fault(char side, const qkcts_input_rounding& points) {
  for (const std::uint32_t point : {points.unit, points.norm})
    if (point > QKCTS_E5M2) return fmt::format("rounding of {}_input_norm: format {} is unknown", side, point);
  if (points.norm == 0 && points.unit != 0)
    return fmt::format("rounding.{0}_input_norm is missing: {0}_input_norm_unit needs it", side);
  return {};
}

std::string rounding_fault(const qkcts_contract& terms) {
  const qkcts_rounding& rounding = terms.rounding;
  if (std::string fault = vector_rounding_fault('q', rounding.q); !fault.empty()) return fault;
  if (std::string fault = vector_rounding_fault('k', rounding.k); !fault.empty()) return fault;
  if (std::string fault = vector_rounding_fault('v', rounding.v); !fault.empty()) return fault;
  if (std::string fault = input_rounding_fault('q', rounding.q_input); !fault.empty()) return fault;
  if (std::string fault = input_rounding_fault('k', rounding.k_input); !fault.empty()) return fault;
  for (const std::uint32_t point :
       {rounding.scaled_q, rounding.product, rounding.scores, rounding.capped, rounding.probs, rounding.output})
    if (point > QKCTS_E5M2) return fmt::format("rounding: format {} is unknown", point);
  if (rounding.product != 0 && rounding.scaled_q != 0)
    return "rounding.product and rounding.scaled_q exclude each other: behind scaled_q nothing multiplies the product, "
           "and its point is rounding.scores";
  if (rounding.saturate > 1) return fmt::format("rounding.saturate is {}, must be 0 or 1", rounding.saturate);
  return {};
}

}  // namespace

std::string contract_fault(const qkcts_contract& terms) {
  if (std::string fault = norm_fault("q_norm", terms.q_norm); !fault.empty()) return fault;
  if (std::string fault = norm_fault("k_norm", terms.k_norm); !fault.empty()) return fault;
  if (std::string fault = norm_fault("v_norm", terms.v_norm); !fault.empty()) return fault;
  if (std::string fault = rope_fault(terms.rope); !fault.empty()) return fault;
  if (std::string fault = score_fault(terms.score); !fault.empty()) return fault;
  if (std::string fault = mask_fault(terms.mask, terms.regions, terms.logits.alibi); !fault.empty()) return fault;
  if (std::string fault = range_fault("q_norm", terms.q_range); !fault.empty()) return fault;
  if (std::string fault = range_fault("k_norm", terms.k_range); !fault.empty()) return fault;
  if (std::string fault = range_fault("v_norm", terms.v_range); !fault.empty()) return fault;
  if (std::string fault = rotation_fault(terms.rope, terms.rotation); !fault.empty()) return fault;
  if (std::string fault = logits_fault(terms); !fault.empty()) return fault;
  if (std::string fault = softmax_fault(terms.softmax); !fault.empty()) return fault;
  if (std::string fault = hidden_fault(terms); !fault.empty()) return fault;
  if (std::string fault = projection_fault(terms.projection); !fault.empty()) return fault;
  if (std::string fault = rounding_fault(terms); !fault.empty()) return fault;
  if (terms.heads.mapping > QKCTS_HEADS_TILE) return fmt::format("heads.mapping {} is unknown", terms.heads.mapping);
  if (terms.rope.order == QKCTS_ROPE_THEN_NORM && terms.q_norm.applied == 0 && terms.k_norm.applied == 0)
    return "rope.order rope_then_norm needs a norm: without one write norm_then_rope";
  return {};
}

}  // namespace qkcts
