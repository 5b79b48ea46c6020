# SPDX-License-Identifier: Apache-2.0
"""A complete adapter in NumPy: every clause, every stage, in binary64 for binary64 and binary32 for all else.

The formulas are those of docs/contract.md, one function for each group of clauses: numpy_vectors.py makes q, k and v,
numpy_rounding.py has the rounding points, and here is what follows from the scores on. Clauses that came with ABI 1.1
and 1.2 are claimed one by one in CLAIMS: what is not named there is never asked for."""

import numpy

import numpy_rounding
import numpy_vectors
import qkcts_adapter

KINDS = ["none", "rms", "layer_norm", "l2", "centered_l2"]
FORMATS = ["none", "binary64", "binary32", "binary16", "bfloat16", "e4m3fn", "e5m2"]
POINTS = (["%s_%s" % (side, point) for side in "qk" for point in
           ("projection", "norm_root", "norm_reciprocal", "norm_unit", "norm", "rope_product", "rope",
            "input_norm_unit", "input_norm")] +
          ["v_norm_root", "v_norm_reciprocal", "v_norm_unit", "v_norm"] +
          ["scaled_q", "product", "scores", "capped", "probs", "output"])
CLAIMS = {
    "v_norm.kind": KINDS, "q_input_norm.kind": KINDS, "k_input_norm.kind": KINDS, "projection.form": ["none", "linear"],
    "rope.sense": ["positive", "negative"], "rope.layout": ["kept", "deinterleaved"],
    "rope.angles": ["table", "computed"], "rope.tables": ["shared", "per_head"],
    "rope.scaling": ["none", "linear", "ntk", "yarn", "llama3", "proportional"], "rope.untruncated": [False, True],
    "score.scale_axes": ["one", "per_head"], "score.alibi": ["none", "relative", "symmetric", "last_key"],
    "score.query_temperature": ["none", "log", "log_ratio"], "softmax.sink": ["none", "column", "post_scale"],
    "softmax.base": ["e", "two"], "softmax.lse_base": ["e", "two"],
    "softmax.hidden_values": ["finite", "excluded", "propagated"], "mask.documents": [False, True],
    "mask.prefix": [False, True], "heads.mapping": ["block", "tile"], "rounding.saturate": [False, True]}
CLAIMS.update({"%s_norm.%s" % (side, key): ["*"] for side in "qkv"
               for key in ("clip_before", "multiplier", "clip_after")})
CLAIMS.update({"rope." + key: ["*"] for key in ("factor", "original_length", "low", "high", "attention_factor")})
CLAIMS.update({"score." + key: ["*"] for key in ("scale_exp_cap", "query_alpha", "query_period", "query_shift")})
CLAIMS.update({"mask.chunk": ["*"]}, **{"rounding." + point: FORMATS for point in POINTS})

DESCRIPTION = {
    "name": "numpy_attention", "version": "2", "build": "numpy " + numpy.__version__, "device": "cpu",
    "formats": ["binary64", "binary32", "binary16", "bfloat16"],
    "stages": ["q_proj", "k_proj", "q_norm", "k_norm", "v_norm", "q_rope", "k_rope", "scores", "capped", "masked",
               "probs", "lse", "output"],
    "profile": {"binary64": "f64", "binary32": "f32", "binary16": "f16_f32acc", "bfloat16": "bf16_f32acc"},
    "supports": CLAIMS,
    "arithmetic": {"accumulator": "binary32, binary64 for binary64", "softmax": "row maximum subtracted",
                   "angles, scale and temperature": "binary64, rounded once"}}


def scale(case):
    """QK-SCALE, QK-TEMP, QK-QTEMP: all that multiplies <q, k>, [B or 1, Hq or 1, Lq or 1, 1], in binary64."""
    fields, value = case.fields, case.fields.get("score.scale_value")
    if fields["score.scale_form"] == "learned_scalar":
        factor = case.numbers("scale").astype("f8")  # [1] or [Hq]
        cap = fields.get("score.scale_exp_cap")
        factor = (factor if cap is None else numpy.exp(numpy.minimum(factor, cap))).reshape(1, -1, 1, 1)
    else:
        factor = {"inv_sqrt_head_dim": lambda: 1 / numpy.sqrt(case.shape.head_dim), "constant": lambda: value,
                  "inv_sqrt_scalar": lambda: 1 / numpy.sqrt(value)}[fields["score.scale_form"]]()
        factor = numpy.full((1, 1, 1, 1), factor)
    factor = factor / fields.get("score.temperature", 1)
    form = fields.get("score.query_temperature", "none")
    if form == "none":
        return factor
    alpha, period, shift = (fields["score.query_" + key] for key in ("alpha", "period", "shift"))
    shifted = case.numbers("q_position_ids").astype("i8") + int(shift)  # [B, Lq]
    steps = shifted // int(period) + 1 if form == "log" else numpy.maximum(shifted / period, 1)
    return factor * (1 + alpha * numpy.log(steps))[:, None, :, None]


def places(case):
    """QK-MASK-02: the key index i' of each query, [B, 1, Lq, 1], and the valid length of each entry, [B]."""
    s, fields = case.shape, case.fields
    lengths = case.numbers("kv_len").astype("i8") if case.has("kv_len") else numpy.full(s.batch, s.k_len)
    offset = {"top_left": 0, "bottom_right": s.k_len - s.q_len, "bottom_right_valid": lengths - s.q_len,
              "offset": int(fields.get("mask.offset", 0))}[fields.get("mask.alignment", "top_left")]
    return (numpy.arange(s.q_len) + (0 * lengths + offset)[:, None])[:, None, :, None], lengths


def visible(case, query, lengths):
    """QK-MASK: [B, Hq, Lq, Lk]."""
    s, fields = case.shape, case.fields
    key = numpy.arange(s.k_len)
    seen = numpy.ones((s.batch, s.q_heads, s.q_len, s.k_len), bool)
    if fields.get("mask.kv_lengths", False):
        seen &= (key < lengths[:, None])[:, None, None]
    window = fields.get("mask.window") or {"left": None, "right": None}
    if fields.get("mask.causal", False):
        in_prefix = False
        if fields.get("mask.prefix", False):
            in_prefix = key < case.numbers("prefix_len")[:, None, None, None]
        seen &= (key <= query) | in_prefix
    if window["left"] is not None:
        seen &= key >= query - window["left"]
    if window["right"] is not None:
        seen &= key <= query + window["right"]
    if fields.get("mask.chunk") is not None:
        chunk = int(fields["mask.chunk"])
        seen &= key // chunk == query // chunk
    if fields.get("mask.documents", False):
        ids = case.numbers("q_document_ids"), case.numbers("k_document_ids")
        seen &= (ids[0][:, :, None] == ids[1][:, None, :])[:, None]
    if fields.get("mask.boolean", False):
        seen &= case.numbers("mask")
    return seen


def linear_bias(case, query, real):
    """QK-ALIBI."""
    key = numpy.arange(case.shape.k_len)
    distance = {"relative": key - query, "symmetric": -numpy.abs(key - query),
                "last_key": key - (case.shape.k_len - 1)}[case.fields["score.alibi"]]
    return case.numbers("alibi_slopes").astype(real)[:, None, None] * distance.astype(real)


def capped(case, scores, query, bias):
    """QK-CAP, QK-BIAS, QK-ALIBI."""
    x, real, order = scores, scores.dtype, case.fields.get("score.bias_order", "none")
    if order == "before_softcap":
        x = x + bias
    if case.fields.get("score.softcap") is not None:
        cap = real.type(case.fields["score.softcap"])
        x = cap * numpy.tanh(x / cap)
    if order == "after_softcap":
        x = x + bias
    if case.fields.get("score.alibi", "none") != "none":
        x = x + linear_bias(case, query, real)
    return x


def weighted(weights, taken, v):
    """Sum of weights times values over the keys that are taken: 0 is not multiplied by what stands at the others."""
    finite = numpy.isfinite(v)
    result = numpy.where(taken, weights, 0) @ numpy.where(finite, v, 0)
    for b, h, key in numpy.argwhere(~finite.all(axis=-1)):
        special = numpy.where(finite[b, h, key], 0, v[b, h, key])
        result[b, h] += numpy.where(taken[b, h, :, key, None], weights[b, h, :, key, None] * special, 0)
    return result


def softmax(case, masked, seen, v, points, stages):
    """QK-SOFTMAX, QK-BASE, QK-SINK, QK-EMPTY, QK-LSE, QK-OUT, QK-HIDDEN."""
    fields, real = case.fields, masked.dtype
    power, logarithm = (numpy.exp2, numpy.log2) if fields.get("softmax.base", "e") == "two" else (numpy.exp, numpy.log)
    sink, hidden = fields.get("softmax.sink", "none"), fields.get("softmax.hidden_values", "finite")
    z = case.numbers("sink").astype(real)[:, None, None] if sink != "none" else real.type(-numpy.inf)
    empty = ~seen.any(axis=-1, keepdims=True) & (sink != "column")
    largest = masked.max(axis=-1, keepdims=True)
    largest = numpy.maximum(largest, z) if sink == "column" else numpy.where(empty, 0, largest)
    weights = power(masked - largest)
    total = weights.sum(axis=-1, keepdims=True) + (power(z - largest) if sink == "column" else 0)
    lse = largest + logarithm(total)  # of an empty row log 0
    probs = weights / numpy.where(empty, 1, total)
    taken = seen
    if fields.get("mask.empty_row", "zero") == "uniform":
        probs = numpy.where(empty, real.type(1) / real.type(probs.shape[-1]), probs)
        taken = seen | empty
    if fields.get("mask.empty_row", "zero") == "nan":
        probs, lse = numpy.where(empty, real.type(numpy.nan), probs), numpy.where(empty, real.type(numpy.nan), lse)
        taken = seen | empty
    probs = points("probs", probs)
    output = probs @ v if hidden == "propagated" else weighted(probs, taken, v)
    if sink == "post_scale":  # of base e alone
        output = output / numpy.where(empty, 1, 1 + numpy.exp(z - lse))
    of_base = {("e", "two"): numpy.log2(numpy.e), ("two", "e"): numpy.log(2)}
    factor = of_base.get((fields.get("softmax.base", "e"), fields.get("softmax.lse_base", "e")), 1)
    stages["probs"], stages["lse"] = probs, (lse * real.type(factor))[..., 0]
    stages["output"] = points("output", output)


def run(case):
    stages, points, s = {}, numpy_rounding.Points(case.fields), case.shape
    with numpy.errstate(all="ignore"):  # of hidden keys, of special values and of what may overflow
        q, k = (numpy_vectors.query_or_key(case, side, points, stages) for side in "qk")
        v = stages["v_norm"] = numpy_vectors.transformed(case, "v", case.numbers("v"), points)
        head, group = numpy.arange(s.q_heads), s.q_heads // s.kv_heads  # QK-HEADS
        of_head = head % s.kv_heads if case.fields.get("heads.mapping", "block") == "tile" else head // group
        k, v, tau = k[:, of_head], v[:, of_head], scale(case).astype(q.dtype)
        if points.has("scaled_q"):
            x = points("scaled_q", q * tau) @ k.swapaxes(-1, -2)
        else:
            x = tau * points("product", q @ k.swapaxes(-1, -2))
        stages["scores"] = points("scores", x)
        query, lengths = places(case)
        bias = case.numbers("bias") if case.fields.get("score.bias_order", "none") != "none" else None
        stages["capped"] = points("capped", capped(case, stages["scores"], query, bias))
        seen = visible(case, query, lengths)
        shown = seen  # where a score stands in place of -inf
        if bias is not None:
            seen = shown = seen & (bias != -numpy.inf)
            # QK-HIDDEN: -inf of a bias after the cap is added, and NaN may be left of it.
            added = case.fields["score.bias_order"] == "after_softcap"
            if added and case.fields["softmax.hidden_values"] == "propagated":
                shown = seen | (bias == -numpy.inf)
        stages["masked"] = numpy.where(shown, stages["capped"], q.dtype.type(-numpy.inf))
        softmax(case, stages["masked"], seen, v, points, stages)
    case.implementation = "numpy %s, %s" % (numpy.__version__, q.dtype)
    return stages


if __name__ == "__main__":
    qkcts_adapter.serve(DESCRIPTION, run)
