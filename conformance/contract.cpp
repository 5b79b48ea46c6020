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

std::string mask_fault(const qkcts_mask& mask) {
  if (mask.causal > 1 || mask.kv_lengths > 1 || mask.boolean > 1 || mask.has_window > 1)
    return "mask.causal, kv_lengths, boolean and has_window must be 0 or 1";
  if (mask.empty_row > QKCTS_EMPTY_UNIFORM) return fmt::format("mask.empty_row {} is unknown", mask.empty_row);
  if (mask.causal == 0 && mask.has_window == 0) return {};
  if (mask.alignment > QKCTS_OFFSET) return fmt::format("mask.alignment {} is unknown", mask.alignment);
  if (mask.alignment == QKCTS_BOTTOM_RIGHT_VALID && mask.kv_lengths == 0)
    return "mask.alignment bottom_right_valid needs mask.kv_lengths";
  if (mask.alignment == QKCTS_OFFSET && std::abs(static_cast<double>(mask.offset)) > static_cast<double>(farthest))
    return fmt::format("mask.offset is {}, must lie within +-2^40", mask.offset);
  if (mask.has_window != 0 && (mask.window_left > farthest || mask.window_right > farthest))
    return "mask.window is wider than 2^40";
  if (mask.has_window != 0 && mask.window_left < 0 && mask.window_right < 0)
    return "mask.window is unlimited on both sides: leave it out";
  return {};
}

}  // namespace

std::string contract_fault(const qkcts_contract& terms) {
  if (std::string fault = norm_fault("q_norm", terms.q_norm); !fault.empty()) return fault;
  if (std::string fault = norm_fault("k_norm", terms.k_norm); !fault.empty()) return fault;
  if (std::string fault = rope_fault(terms.rope); !fault.empty()) return fault;
  if (std::string fault = score_fault(terms.score); !fault.empty()) return fault;
  if (std::string fault = mask_fault(terms.mask); !fault.empty()) return fault;
  if (terms.rope.order == QKCTS_ROPE_THEN_NORM && terms.q_norm.applied == 0 && terms.k_norm.applied == 0)
    return "rope.order rope_then_norm needs a norm: without one write norm_then_rope";
  return {};
}

}  // namespace qkcts
