// SPDX-License-Identifier: Apache-2.0
#include "conformance/model_config_effect.hpp"

#include <cmath>

#include <fmt/format.h>

#include "conformance/contract_field.hpp"

namespace qkcts {
namespace {

void strip_norms(qkcts_contract& terms) {
  terms.q_norm = terms.k_norm = qkcts_norm{};
  if (terms.rope.order == QKCTS_ROPE_THEN_NORM) terms.rope.order = QKCTS_NORM_THEN_ROPE;
}

class Effect {
 public:
  Effect(const Json& family, ConfigFields& fields, Contract& contract, const ChosenLayer& layer)
      : family_(family), fields_(fields), contract_(contract), terms_(contract.terms), layer_(layer) {}

  void apply(const std::string& key, const std::string& effect) {
    if (effect == "window" || effect == "window_both" || effect == "window_before") return window(key, effect);
    if (effect == "bidirectional") return bidirectional(key);
    if (effect == "norms") return norms(key);
    if (effect == "norm_kind") return norm_kind(key);
    if (effect == "norm_axis") return norm_axis(key);
    if (effect == "epsilon_of_format") return epsilon_of_format(key);
    if (effect == "log_scaling") return log_scaling(key);
    if (effect == "pairing") return pairing(key);
    if (effect == "text_bidirectional") return text_bidirectional(key);
    if (effect == "values_are_keys") return values_are_keys(key);
    if (effect == "layer_divides") return layer_divides(key);
    if (effect == "unscaled_if_false") return unscaled_if_false(key);
    if (effect == "query_flag") return query_flag(key);
    const std::optional<double> value = fields_.number(key);
    if (value && (!std::isfinite(*value) || *value < 0 || (*value == 0 && effect != "eps" && effect != "query_alpha")))
      fields_.refuse(key, effect == "eps" ? "must be >= 0" : "must be > 0");
    if (!value && !fields_.has(key)) return;
    set(key, effect, value);
  }

 private:
  // `value` is none where the file says null.
  void set(const std::string& key, const std::string& effect, const std::optional<double>& value) {
    const double number = value.value_or(0);
    if (effect == "eps") {
      if (!value) fields_.refuse(key, "must be a number");
      return norm_eps(key, number);
    }
    if (effect == "scale_scalar" || effect == "scale_constant") {
      terms_.score.scale_form = !value
                                    ? QKCTS_SCALE_INV_SQRT_HEAD_DIM
                                    : (effect == "scale_scalar" ? QKCTS_SCALE_INV_SQRT_SCALAR : QKCTS_SCALE_CONSTANT);
      terms_.score.scale_value = number;
      return fields_.use(key, "score.scale_form");
    }
    if (effect == "softcap") {
      terms_.score.softcap = number;
      return fields_.use(key, "score.softcap");
    }
    if (effect == "clip_before" || effect == "clip_after") {
      for (qkcts_norm_range* const range : {&terms_.q_range, &terms_.k_range, &terms_.v_range})
        (effect == "clip_before" ? range->clip_before : range->clip_after) = number;
      return fields_.use(key, fmt::format("q_norm.{0}, k_norm.{0}, v_norm.{0}", effect));
    }
    if (effect == "v_multiplier") {
      terms_.v_range.multiplier = number;  // null: 1, which 0 stands for
      return fields_.use(key, "v_norm.multiplier");
    }
    if (effect == "chunk" && terms_.regions.chunk == 0) return fields_.pass_over(key, "this layer has no chunks");
    if (effect == "chunk") {
      terms_.regions.chunk = value ? *fields_.integer(key) : 0;
      return fields_.use(key, "mask.chunk");
    }
    if (!value) fields_.refuse(key, "must be a number");
    if (effect.starts_with("query_") && terms_.logits.query_temperature == QKCTS_QUERY_TEMPERATURE_NONE)
      return fields_.pass_over(key, "this layer has no such temperature");
    if (effect == "q_multiplier") terms_.q_range.multiplier = number;
    if (effect == "k_multiplier") terms_.k_range.multiplier = number;
    if (effect == "query_alpha") terms_.logits.query_alpha = number;
    if (effect == "query_period") terms_.logits.query_period = number;
    fields_.use(key, effect == "q_multiplier"   ? "q_norm.multiplier"
                     : effect == "k_multiplier" ? "k_norm.multiplier"
                                                : "score." + effect);
  }

  // Every norm of the contract has the eps of the file: of q, k and v, before and after a projection.
  void norm_eps(const std::string& key, double eps) {
    std::string use;
    for (const NormSection& section : norm_sections()) {
      qkcts_norm& norm = norm_of(terms_, section);
      norm.eps = eps;  // also of one that is not applied, where it says nothing
      if (norm.applied != 0) use += fmt::format("{}{}.eps", use.empty() ? "" : ", ", section.name);
    }
    if (use.empty()) return fields_.pass_over(key, "no norm of q and k");
    fields_.use(key, use);
  }

  void window(const std::string& key, const std::string& effect) {
    if (terms_.mask.has_window == 0) return fields_.pass_over(key, "this layer has no window");
    const std::optional<std::int64_t> size = fields_.integer(key);
    if (!size && !fields_.has(key)) return;
    if (!size || *size < 1) fields_.refuse(key, "a sliding layer needs a window of at least 1");
    // window_before: the size does not count the query's own token.
    terms_.mask.window_left = effect == "window" ? *size - 1 : *size;
    if (effect == "window_both") terms_.mask.window_right = *size;
    fields_.use(key, "mask.window");
  }

  // Gemma 3 as an encoder: no causal mask, and |i - j| < W / 2 + 1 on sliding layers.
  void bidirectional(const std::string& key) {
    if (!fields_.flag(key).value_or(false)) return fields_.pass_over(key, "switched off");
    const std::int64_t reach = (terms_.mask.window_left + 1) / 2;
    const bool slides = terms_.mask.has_window != 0;
    terms_.mask.causal = 0;
    if (slides) terms_.mask.window_left = terms_.mask.window_right = reach;
    fields_.use(key, slides ? "mask.causal, mask.window" : "mask.causal");
  }

  void norms(const std::string& key) {
    if (!fields_.flag(key).value_or(family_.at("gates").at(key).get<bool>())) strip_norms(terms_);
    if (fields_.has(key)) fields_.use(key, "q_norm.kind, k_norm.kind");
  }

  void norm_kind(const std::string& key) {  // use_rmsnorm
    const std::optional<bool> value = fields_.flag(key);
    if (value) fields_.use(key, "q_norm.kind, k_norm.kind");
    if (value.value_or(true) || terms_.q_norm.applied == 0) return;
    const Contract other = shipped_contract(family_.at("other_norm").get<std::string>());
    terms_.q_norm = other.terms.q_norm;
    terms_.k_norm = other.terms.k_norm;
  }

  void norm_axis(const std::string& key) {  // qk_norm_type: "olmo" or "qwen3"
    const std::optional<std::string> value = fields_.text(key);
    if (!value) return;
    if (*value != "olmo" && *value != "qwen3") fields_.refuse(key, "must be olmo or qwen3");
    for (qkcts_norm* const norm : {&terms_.q_norm, &terms_.k_norm}) {
      norm->axis = *value == "olmo" ? QKCTS_AXIS_FULL_WIDTH : QKCTS_AXIS_HEAD;
      norm->gain_axes = *value == "olmo" ? QKCTS_AXES_FULL_WIDTH : QKCTS_AXES_HEAD_DIM;
    }
    fields_.use(key, "q_norm.axis, k_norm.axis");
  }

  void epsilon_of_format(const std::string& key) {  // dtype
    const std::optional<std::string> value = fields_.text(key);
    if (!value) return;
    const double eps = *value == "bfloat16"  ? 0x1p-7
                       : *value == "float16" ? 0x1p-10
                       : *value == "float32" ? 0x1p-23
                                             : 0;
    if (eps == 0) fields_.refuse(key, "must be bfloat16, float16 or float32: eps follows it");
    terms_.q_norm.eps = terms_.k_norm.eps = eps;
    fields_.use(key, "q_norm.eps, k_norm.eps");
  }

  // Inkling: full layers multiply their scores by 1 + alpha ln(max((p + 1) / floor, 1)); null: they do not.
  void log_scaling(const std::string& key) {
    const std::string factor = "log_scaling_alpha";
    const std::optional<std::int64_t> floor = fields_.integer(key);
    const std::optional<double> alpha = fields_.number(factor);
    if (layer_.kind != "full" || !floor) {
      fields_.pass_over(key, layer_.kind == "full" ? "switched off" : "not on this layer");
      return fields_.pass_over(factor, "says nothing without log_scaling_n_floor, or on this layer");
    }
    if (*floor < 1) fields_.refuse(key, "must be at least 1");
    if (alpha && !(*alpha >= 0 && std::isfinite(*alpha))) fields_.refuse(factor, "must be >= 0");
    terms_.logits.query_temperature = QKCTS_QUERY_TEMPERATURE_LOG_RATIO;
    terms_.logits.query_alpha = alpha.value_or(0.1);
    terms_.logits.query_period = static_cast<double>(*floor);
    terms_.logits.query_shift = 1;
    contract_.sources.emplace_back(
        "left out: the same factor of the bias, which the model multiplies in and the input already holds");
    fields_.use(key, "score.query_temperature");
    if (alpha) fields_.use(factor, "score.query_alpha");
  }

  void pairing(const std::string& key) {  // rope_type of LTX-2: "interleaved" or "split"
    const std::optional<std::string> value = fields_.text(key);
    if (!value) return;
    if (*value != "interleaved" && *value != "split") fields_.refuse(key, "must be interleaved or split");
    if (terms_.rope.order == QKCTS_ROPE_NONE) return fields_.pass_over(key, "this attention does not rotate");
    terms_.rope.pairing = *value == "split" ? QKCTS_HALF_SPLIT : QKCTS_INTERLEAVED;
    fields_.use(key, "rope.pairing");
  }

  // Gemma 4: "all" is an encoder, |i - j| <= W / 2 + 1 on sliding layers; "vision" leaves text causal.
  void text_bidirectional(const std::string& key) {
    const std::optional<std::string> value = fields_.text(key);
    if (!value) return fields_.pass_over(key, "switched off");
    if (*value == "vision") {
      contract_.sources.emplace_back("left out: tokens of one image see each other, a boolean mask");
      return fields_.pass_over(key, "text stays causal");
    }
    if (*value != "all") fields_.refuse(key, "must be all or vision");
    const bool slides = terms_.mask.has_window != 0;
    terms_.mask.causal = 0;
    if (slides) terms_.mask.window_left = terms_.mask.window_right = (terms_.mask.window_left + 1) / 2 + 1;
    fields_.use(key, slides ? "mask.causal, mask.window" : "mask.causal");
  }

  void values_are_keys(const std::string& key) {  // attention_k_eq_v
    if (!fields_.flag(key).value_or(false) || layer_.kind != "full")
      return fields_.pass_over(key, "this layer has values of its own");
    fields_.use(key, "the input v is the input k");
  }

  void layer_divides(const std::string& key) {
    if (!fields_.flag(key).value_or(false)) return fields_.pass_over(key, "switched off");
    const double scale = terms_.score.scale_form == QKCTS_SCALE_CONSTANT
                             ? terms_.score.scale_value
                             : 1 / std::sqrt(static_cast<double>(contract_.model_shape.head_dim));
    terms_.score.scale_form = QKCTS_SCALE_CONSTANT;
    terms_.score.scale_value = scale / static_cast<double>(layer_.index + 1);
    fields_.use(key, "score.scale_value");
  }

  void query_flag(const std::string& key) {  // attn_temperature_tuning: a flag, or 4 for true in older files
    const Json* const value = fields_.find(key);
    if (value == nullptr) return;
    if (terms_.logits.query_temperature == QKCTS_QUERY_TEMPERATURE_NONE)
      return fields_.pass_over(key, "this layer has no such temperature");
    if (*value != true && *value != false && *value != 4) fields_.refuse(key, "must be true or false");
    if (*value == false) terms_.logits = qkcts_logits{};
    fields_.use(key, "score.query_temperature");
  }

  void unscaled_if_false(const std::string& key) {
    if (fields_.flag(key).value_or(true)) return fields_.pass_over(key, "the usual scale");
    terms_.score.scale_form = QKCTS_SCALE_CONSTANT;
    terms_.score.scale_value = 1;
    fields_.use(key, "score.scale_form");
  }

  const Json& family_;
  ConfigFields& fields_;
  Contract& contract_;
  qkcts_contract& terms_;
  const ChosenLayer& layer_;
};

}  // namespace

void apply_config_effect(const std::string& key, const std::string& effect, const Json& family, ConfigFields& fields,
                         const ChosenLayer& layer, Contract& contract) {
  Effect(family, fields, contract, layer).apply(key, effect);
}

}  // namespace qkcts
