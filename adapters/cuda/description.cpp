// SPDX-License-Identifier: Apache-2.0
#include "adapters/cuda/description.hpp"

#include <initializer_list>

namespace qkcts::cuda {

namespace {

constexpr const char* formats = R"(["binary64", "binary32", "binary16", "bfloat16"])";

constexpr const char* stages = R"(["q_proj", "k_proj", "q_norm", "k_norm", "v_norm", "q_rope", "k_rope", "scores",
    "capped", "masked", "probs", "lse", "output"])";

constexpr const char* profiles =
    R"({"binary64": "f64", "binary32": "f32", "binary16": "f16_f32acc", "bfloat16": "bf16_f32acc"})";

// Clauses of ABI 1.0 need no claim.
constexpr const char* later_clauses = R"(
    "q_norm.clip_before": ["*"], "q_norm.multiplier": ["*"], "q_norm.clip_after": ["*"],
    "k_norm.clip_before": ["*"], "k_norm.multiplier": ["*"], "k_norm.clip_after": ["*"],
    "v_norm.kind": ["none", "rms", "layer_norm", "l2", "centered_l2"],
    "v_norm.clip_before": ["*"], "v_norm.multiplier": ["*"], "v_norm.clip_after": ["*"],
    "projection.form": ["none", "linear"],
    "q_input_norm.kind": ["none", "rms", "layer_norm", "l2", "centered_l2"],
    "k_input_norm.kind": ["none", "rms", "layer_norm", "l2", "centered_l2"],
    "rope.sense": ["positive", "negative"], "rope.layout": ["kept", "deinterleaved"],
    "rope.angles": ["table", "computed"], "rope.tables": ["shared", "per_head"],
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
    "heads.mapping": ["block", "tile"], "rounding.saturate": [false, true])";

constexpr std::initializer_list<const char*> points = {"q_projection",
                                                       "q_norm_root",
                                                       "q_norm_reciprocal",
                                                       "q_norm_unit",
                                                       "q_norm",
                                                       "q_rope_product",
                                                       "q_rope",
                                                       "k_projection",
                                                       "k_norm_root",
                                                       "k_norm_reciprocal",
                                                       "k_norm_unit",
                                                       "k_norm",
                                                       "k_rope_product",
                                                       "k_rope",
                                                       "v_norm_root",
                                                       "v_norm_reciprocal",
                                                       "v_norm_unit",
                                                       "v_norm",
                                                       "scaled_q",
                                                       "scores",
                                                       "capped",
                                                       "probs",
                                                       "output",
                                                       "product",
                                                       "q_input_norm_unit",
                                                       "q_input_norm",
                                                       "k_input_norm_unit",
                                                       "k_input_norm"};

constexpr const char* arithmetic = R"({
    "accumulator": "binary64 for binary64 cases, else binary32",
    "chain": "plain: FMA in ascending order; tensor: m16n8k16, K and F of the matrix unit",
    "operands": "tensor: what has more than 16 bits as an exact sum of three bfloat16",
    "weights": "tensor: storage format",
    "statistic": "partial sums of 128 threads, joined by a tree",
    "softmax": "online, base of the contract, shift = running row maximum",
    "online_block": 32, "scale": "after the dot", "division": "true division",
    "angles": "binary64",
    "exp_ulp": 2.5, "tanh_ulp": 2.5, "log_ulp": 1.5, "sqrt_ulp": 0.5, "gradual_underflow": true})";

}  // namespace

std::string description(bool host) {
  std::string text = R"({"name": ")" + std::string(host ? "cuda_host" : "cuda") + R"(", "version": "0.1.0",
  "build": ")" __VERSION__ R"(", "device": ")";
  text += host ? "host executor, no GPU" : "NVIDIA GPU";
  text += R"(", "layouts": ["bshd", "padded", "strided", "byte_offset"], "formats": )" + std::string(formats) +
          R"(, "stages": )" + stages + R"(, "profile": )" + profiles;
  text += R"(, "supports": {)" + std::string(later_clauses);
  for (const char* point : points)
    text += R"(, "rounding.)" + std::string(point) +
            R"(": ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"])";
  text += R"(}, "limits": {"k_len": {"max": 1073741824}}, "arithmetic": )" + std::string(arithmetic);
  return text + R"(, "claims": {"bitwise_repeatable": true, "batch_invariant": true}})";
}

}  // namespace qkcts::cuda
