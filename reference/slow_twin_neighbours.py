# SPDX-License-Identifier: Apache-2.0
"""For every clause of ABI 1.1 and 1.2: a shipped contract and a neighbour of it that differs in that clause alone."""
import copy


def drop(section, key):
    return lambda contract: contract[section].pop(key)


def put(section, key, value):
    return lambda contract: contract.setdefault(section, {}).update({key: value})


def move(point, other):
    return lambda contract: contract["rounding"].update({other: contract["rounding"].pop(point)})


NEIGHBOURS = [
    ("clause_heads_tile", put("heads", "mapping", "block")),
    ("clause_clip_before", drop("q_norm", "clip_before")),
    ("clause_clip_before", put("k_norm", "clip_before", 0.95)),
    ("clause_clip_after", drop("q_norm", "clip_after")),
    ("clause_clip_after", put("k_norm", "multiplier", 0.61)),
    ("clause_clip_without_norm", drop("q_norm", "clip_before")),
    ("clause_clip_without_norm", drop("k_norm", "clip_after")),
    ("clause_clip_without_norm", put("q_norm", "multiplier", 1.0)),
    ("clause_rope_negative", put("rope", "sense", "positive")),
    ("clause_rope_deinterleaved", put("rope", "layout", "kept")),
    ("clause_rope_computed", put("rope", "theta", 1000.0000000001)),
    ("clause_rope_linear", put("rope", "factor", 4.0000000000001)),
    ("clause_rope_linear", put("rope", "scaling", "none")),
    ("clause_rope_ntk", put("rope", "scaling", "none")),
    ("clause_rope_ntk", put("rope", "scaling", "linear")),
    ("clause_rope_yarn", drop("rope", "attention_factor")),
    ("clause_rope_yarn", put("rope", "untruncated", True)),
    ("clause_rope_yarn", put("rope", "high", 1.5)),
    ("clause_rope_yarn_untruncated", put("rope", "untruncated", False)),
    ("clause_rope_llama3", put("rope", "scaling", "linear")),
    ("clause_rope_llama3", put("rope", "high", 3.0)),
    ("clause_rope_proportional", put("rope", "factor", 0.5)),
    ("clause_scale_per_head", put("score", "scale_axes", "one")),
    ("clause_scale_exp_per_head", put("score", "scale_exp_cap", 0.4)),
    ("clause_query_temperature", put("score", "query_shift", 0)),
    ("clause_query_temperature", put("score", "query_period", 3)),
    ("clause_query_temperature", put("score", "query_alpha", 0.31)),
    ("clause_alibi_relative", put("score", "alibi", "symmetric")),
    ("clause_alibi_relative", put("score", "alibi", "last_key")),
    ("clause_alibi_symmetric", put("score", "alibi", "relative")),
    ("clause_alibi_last_key", put("score", "alibi", "relative")),
    ("clause_base_two", put("softmax", "base", "e")),
    ("clause_base_two", put("softmax", "lse_base", "e")),
    ("clause_lse_base_two", put("softmax", "lse_base", "e")),
    ("clause_sink_column", put("softmax", "sink", "post_scale")),
    ("clause_sink_column", put("softmax", "sink", "none")),
    ("clause_sink_post_scale", put("softmax", "sink", "column")),
    ("clause_sink_post_scale", put("softmax", "sink", "none")),
    ("clause_hidden_excluded", put("softmax", "hidden_values", "finite")),
    ("clause_mask_chunk", put("mask", "chunk", 2)),
    ("clause_mask_documents", put("mask", "documents", False)),
    ("clause_mask_prefix", put("mask", "prefix", False)),
    ("clause_v_norm", put("v_norm", "gain", "none")),
    ("clause_v_norm", put("v_norm", "gain", "w")),
    ("clause_v_norm", put("v_norm", "eps", 0.0021)),
    ("clause_v_norm", put("v_norm", "statistic", "sum_square")),
    ("clause_v_full_width", put("v_norm", "axis", "head")),
    ("clause_v_multiplier", drop("v_norm", "multiplier")),
    ("clause_v_multiplier", drop("v_norm", "clip_before")),
    ("clause_v_norm_hidden", drop("v_norm", "clip_after")),
    ("clause_v_norm_hidden", put("v_norm", "root", "inside_root")),
    ("clause_v_norm_hidden", put("mask", "empty_row", "zero")),
    ("clause_projection_bias", put("projection", "bias", False)),
    ("clause_projection_input_norm", lambda contract: contract.pop("q_input_norm")),
    ("clause_projection_input_norm", put("k_input_norm", "gain", "w")),
    ("clause_projection_input_norm", put("k_input_norm", "center", False)),
    ("clause_projection_input_norm", put("q_input_norm", "eps", 4.1e-5)),
    ("clause_projection_two_norms", put("k_norm", "eps", 3.1e-6)),
    ("clause_projection_two_norms", lambda contract: contract.pop("q_input_norm")),
    ("clause_projection_two_norms", put("projection", "bias", False)),
    ("clause_rope_tables_per_head", put("rope", "tables", "shared")),
    ("clause_query_temperature_ratio", put("score", "query_temperature", "log")),
    ("clause_query_temperature_ratio", put("score", "query_alpha", 0.01)),
    ("clause_query_temperature_ratio", put("score", "query_period", 1)),
    # A point dropped, one put in another place, one in another format, one that does not round to nearest.
    ("clause_round_projection", drop("rounding", "q_projection")),
    ("clause_round_projection", move("k_projection", "k_norm_unit")),
    ("clause_round_norm_root", drop("rounding", "q_norm_root")),
    ("clause_round_norm_root", move("k_norm_root", "k_norm_reciprocal")),
    ("clause_round_norm_reciprocal", drop("rounding", "k_norm_reciprocal")),
    ("clause_round_norm_reciprocal", drop("rounding", "q_norm_root")),
    ("clause_round_norm_unit", drop("rounding", "q_norm_unit")),
    ("clause_round_norm_unit", put("rounding", "k_norm_unit", "bfloat16_toward_zero")),
    ("clause_round_norm", put("rounding", "q_norm_unit", "bfloat16")),
    ("clause_round_norm", put("rounding", "k_norm", "binary16")),
    ("clause_round_norm", put("rounding", "q_norm", "bfloat16_toward_zero")),
    ("clause_round_rope_product", drop("rounding", "q_rope_product")),
    ("clause_round_rope_product", put("rounding", "k_rope_product", "bfloat16_toward_zero")),
    ("clause_round_rope", drop("rounding", "k_rope")),
    ("clause_round_rope", put("rounding", "q_rope_product", "bfloat16")),
    ("clause_round_rope_then_norm", drop("rounding", "q_rope")),
    ("clause_round_rope_then_norm", put("rope", "order", "norm_then_rope")),
    ("clause_round_scaled_q", drop("rounding", "scaled_q")),
    ("clause_round_scaled_q", move("scaled_q", "scores")),
    ("clause_round_scaled_q", move("scaled_q", "q_norm")),
    ("clause_round_product", drop("rounding", "product")),
    ("clause_round_product", move("product", "scores")),
    ("clause_round_product", put("rounding", "product", "bfloat16_toward_zero")),
    ("clause_round_product_scores", drop("rounding", "product")),
    ("clause_round_product_scores", drop("rounding", "scores")),
    ("clause_round_input_norm", drop("rounding", "q_input_norm")),
    ("clause_round_input_norm", move("k_input_norm", "k_projection")),
    ("clause_round_input_norm", put("rounding", "q_input_norm_unit", "bfloat16")),
    ("clause_round_input_norm_unit", drop("rounding", "k_input_norm_unit")),
    ("clause_round_input_norm_unit", put("rounding", "q_input_norm", "bfloat16_toward_zero")),
    ("clause_round_scores", drop("rounding", "scores")),
    ("clause_round_scores", move("scores", "scaled_q")),
    ("clause_round_capped", drop("rounding", "scores")),
    ("clause_round_capped", drop("rounding", "capped")),
    ("clause_round_capped", put("rounding", "capped", "binary16_toward_zero")),
    ("clause_round_probs", drop("rounding", "probs")),
    ("clause_round_probs", put("rounding", "probs", "bfloat16_toward_zero")),
    ("clause_round_probs", put("rounding", "output", "bfloat16")),
    ("clause_round_output", drop("rounding", "output")),
    ("clause_round_v_norm", drop("rounding", "v_norm_unit")),
    ("clause_round_v_norm_reciprocal", drop("rounding", "v_norm_reciprocal")),
    ("clause_round_e4m3fn", put("rounding", "q_rope", "e5m2")),
    ("clause_round_e4m3fn", drop("rounding", "k_rope")),
    ("clause_round_e5m2", put("rounding", "k_norm", "e4m3fn")),
]


def changed(case, change):
    """The case under the neighbour; what the reference stored stays."""
    neighbour = dict(case)
    neighbour["contract"] = copy.deepcopy(case["contract"])
    change(neighbour["contract"])
    return neighbour
