# SPDX-License-Identifier: Apache-2.0
"""For every clause of ABI 1.1: a shipped contract and a neighbour of it that differs in that clause alone."""
import copy


def drop(section, key):
    return lambda contract: contract[section].pop(key)


def put(section, key, value):
    return lambda contract: contract.setdefault(section, {}).update({key: value})


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
]


def changed(case, change):
    """The case under the neighbour; what the reference stored stays."""
    neighbour = dict(case)
    neighbour["contract"] = copy.deepcopy(case["contract"])
    change(neighbour["contract"])
    return neighbour
