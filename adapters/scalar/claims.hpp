// SPDX-License-Identifier: Apache-2.0
// What scalar and its mutants say of themselves in the description: every stage, and in /supports every value of every
// clause that came with ABI 1.1 or 1.2. Clauses of ABI 1.0 need no claim.
#pragma once

namespace qkcts::scalar {

constexpr const char* stages = R"([
    "q_proj", "k_proj", "q_norm", "k_norm", "v_norm", "q_rope", "k_rope", "scores", "capped", "masked", "probs", "lse",
    "output"])";

constexpr const char* supports = R"({
    "q_norm.clip_before": ["*"], "q_norm.multiplier": ["*"], "q_norm.clip_after": ["*"],
    "k_norm.clip_before": ["*"], "k_norm.multiplier": ["*"], "k_norm.clip_after": ["*"],
    "rope.sense": ["positive", "negative"], "rope.layout": ["kept", "deinterleaved"],
    "rope.angles": ["table", "computed"],
    "rope.scaling": ["none", "linear", "ntk", "yarn", "llama3", "proportional"],
    "rope.factor": ["*"], "rope.original_length": ["*"], "rope.low": ["*"], "rope.high": ["*"],
    "rope.untruncated": [false, true], "rope.attention_factor": ["*"],
    "score.scale_axes": ["one", "per_head"], "score.scale_exp_cap": ["*"],
    "score.alibi": ["none", "relative", "symmetric", "last_key"],
    "score.query_temperature": ["none", "log", "log_ratio"],
    "score.query_alpha": ["*"], "score.query_period": ["*"], "score.query_shift": ["*"],
    "softmax.sink": ["none", "column", "post_scale"], "softmax.base": ["e", "two"], "softmax.lse_base": ["e", "two"],
    "softmax.hidden_values": ["finite", "excluded", "propagated"],
    "mask.chunk": ["*"], "mask.documents": [false, true], "mask.prefix": [false, true],
    "heads.mapping": ["block", "tile"],
    "rope.tables": ["shared", "per_head"],
    "v_norm.kind": ["none", "rms", "layer_norm", "l2", "centered_l2"],
    "v_norm.clip_before": ["*"], "v_norm.multiplier": ["*"], "v_norm.clip_after": ["*"],
    "projection.form": ["none", "linear"],
    "q_input_norm.kind": ["none", "rms", "layer_norm", "l2", "centered_l2"],
    "k_input_norm.kind": ["none", "rms", "layer_norm", "l2", "centered_l2"],
    "rounding.q_projection": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.q_norm_root": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.q_norm_reciprocal": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.q_norm_unit": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.q_norm": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.q_rope_product": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.q_rope": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.k_projection": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.k_norm_root": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.k_norm_reciprocal": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.k_norm_unit": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.k_norm": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.k_rope_product": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.k_rope": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.v_norm_root": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.v_norm_reciprocal": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.v_norm_unit": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.v_norm": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.scaled_q": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.scores": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.capped": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.probs": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.output": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.saturate": [false, true],
    "rounding.product": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.q_input_norm_unit": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.q_input_norm": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.k_input_norm_unit": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"],
    "rounding.k_input_norm": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"]})";

}  // namespace qkcts::scalar
