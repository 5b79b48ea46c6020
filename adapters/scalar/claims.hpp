// SPDX-License-Identifier: Apache-2.0
// What scalar and its mutants say in /supports: every value of every clause that came with ABI 1.1. Clauses of ABI 1.0
// need no claim.
#pragma once

namespace qkcts::scalar {

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
    "score.query_temperature": ["none", "log"],
    "score.query_alpha": ["*"], "score.query_period": ["*"], "score.query_shift": ["*"],
    "softmax.sink": ["none", "column", "post_scale"], "softmax.base": ["e", "two"], "softmax.lse_base": ["e", "two"],
    "softmax.hidden_values": ["finite", "excluded"],
    "mask.chunk": ["*"], "mask.documents": [false, true], "mask.prefix": [false, true],
    "heads.mapping": ["block", "tile"]})";

}  // namespace qkcts::scalar
