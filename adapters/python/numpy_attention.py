# SPDX-License-Identifier: Apache-2.0
"""A complete adapter in NumPy: every clause of ABI 1.0, every stage, in binary64 for binary64 and binary32 for all else.

The formulas are those of docs/contract.md, one function for each group of clauses. What came with ABI 1.1 and 1.2 is not
declared, so its default is all that is ever asked for."""

import numpy

import qkcts_adapter

DESCRIPTION = {
    "name": "numpy_attention", "version": "1", "build": "numpy " + numpy.__version__, "device": "cpu",
    "formats": ["binary64", "binary32", "binary16", "bfloat16"],
    "stages": ["q_norm", "k_norm", "q_rope", "k_rope", "scores", "capped", "masked", "probs", "lse", "output"],
    "profile": {"binary64": "f64", "binary32": "f32", "binary16": "f16_f32acc", "bfloat16": "bf16_f32acc"},
    "arithmetic": {"accumulator": "binary32, binary64 for binary64", "softmax": "natural base, row maximum subtracted"}}


def by_axes(parameter, axes, heads, lanes):
    """A gain or bias as [H, 1, lanes], to stand beside [B, H, L, lanes]."""
    if axes in ("scalar", "head_dim"):
        return parameter
    return parameter.reshape(heads, 1, 1 if axes == "head" else lanes)


def norm(x, terms, gain, bias):
    """QK-NORM, QK-EPS, QK-GAIN."""
    if terms["kind"] == "none":
        return x
    batch, heads, length, lanes = x.shape
    full_width = terms["axis"] == "full_width"
    if full_width:  # all heads of a token are one vector
        x = x.swapaxes(1, 2).reshape(batch, 1, length, heads * lanes)
    if terms["center"]:
        x = x - numpy.mean(x, axis=-1, keepdims=True)
    squares = x * x
    form = numpy.mean if terms["statistic"] == "mean_square" else numpy.sum
    size, eps = form(squares, axis=-1, keepdims=True), x.dtype.type(terms["eps"])
    divisor = {"inside_root": lambda: numpy.sqrt(size + eps), "outside_root": lambda: numpy.sqrt(size) + eps,
               "max_root": lambda: numpy.maximum(numpy.sqrt(size), eps),
               "max_inside": lambda: numpy.sqrt(numpy.maximum(size, eps))}[terms["root"]]()
    x = x / divisor
    if full_width:
        x = x.reshape(batch, length, heads, lanes).swapaxes(1, 2)
    if terms["gain"] != "none":
        gain = by_axes(gain, terms["gain_axes"], heads, lanes)
        x = x * (gain + 1 if terms["gain"] == "one_plus_w" else gain)
    return x + by_axes(bias, terms["bias_axes"], heads, lanes) if terms["bias_axes"] != "none" else x


def rotated(x, terms, cos, sin, position_ids):
    """QK-ROPE, with tables."""
    lanes = x.shape[-1]
    width = terms["rotated"] or lanes
    start = lanes - width if terms["rotated"] and terms.get("span") == "last" else 0
    c, s = cos[position_ids][:, None], sin[position_ids][:, None]  # [B, 1, L, R/2]
    pairs = numpy.arange(width // 2) + start
    first, second = (pairs, pairs + width // 2) if terms["pairing"] == "half_split" else (
        start + 2 * numpy.arange(width // 2), start + 2 * numpy.arange(width // 2) + 1)
    result = x.copy()
    a, b = x[..., first], x[..., second]
    result[..., first], result[..., second] = a * c - b * s, b * c + a * s
    return result


def prepared(case, side, contract, stages):
    """q or k after norm and rotation, in the order of the contract."""
    x, terms, rope = case.numbers(side), contract[side + "_norm"], contract["rope"]

    def apply_norm(x):
        if terms["kind"] == "none":
            return x
        inputs = [case.numbers(side + name) if case.has(side + name) else None for name in ("_gain", "_bias")]
        stages[side + "_norm"] = norm(x, terms, *inputs)
        return stages[side + "_norm"]

    def apply_rope(x):
        if rope["order"] == "none":
            return x
        stages[side + "_rope"] = rotated(x, rope, case.numbers("cos"), case.numbers("sin"),
                                         case.numbers(side + "_position_ids"))
        return stages[side + "_rope"]

    return apply_norm(apply_rope(x)) if rope["order"] == "rope_then_norm" else apply_rope(apply_norm(x))


def scale(case, score, real):
    """QK-SCALE, QK-TEMP."""
    form = score["scale_form"]
    factor = {"inv_sqrt_head_dim": lambda: 1 / numpy.sqrt(real(case.shape.head_dim)),
              "constant": lambda: real(score["scale_value"]),
              "inv_sqrt_scalar": lambda: 1 / numpy.sqrt(real(score["scale_value"])),
              "learned_scalar": lambda: case.numbers("scale")[0]}[form]()
    return factor, real(score["temperature"])


def visible(case, mask):
    """QK-MASK: [B, Hq, Lq, Lk]."""
    s = case.shape
    lengths = case.numbers("kv_len") if mask["kv_lengths"] else numpy.full(s.batch, s.k_len)
    offset = {"top_left": 0 * lengths, "bottom_right": 0 * lengths + s.k_len - s.q_len,
              "bottom_right_valid": lengths - s.q_len,
              "offset": 0 * lengths + mask.get("offset", 0)}[mask.get("alignment", "top_left")]
    key = numpy.arange(s.k_len)
    query = (numpy.arange(s.q_len) + offset[:, None])[:, None, :, None]
    seen = numpy.broadcast_to((key < lengths[:, None])[:, None, None], (s.batch, s.q_heads, s.q_len, s.k_len))
    window = mask["window"] or {"left": None, "right": None}
    if mask["causal"]:
        seen = seen & (key <= query)
    if window["left"] is not None:
        seen = seen & (key >= query - window["left"])
    if window["right"] is not None:
        seen = seen & (key <= query + window["right"])
    return seen & case.numbers("mask") if mask["boolean"] else seen


def softmax(masked, seen, v, empty_row, stages):
    """QK-SOFTMAX, QK-EMPTY, QK-LSE, QK-OUT."""
    empty = ~seen.any(axis=-1, keepdims=True)
    largest = numpy.where(empty, 0, masked.max(axis=-1, keepdims=True))
    weights = numpy.exp(masked - largest)
    total = weights.sum(axis=-1, keepdims=True)
    lse = (largest + numpy.log(total))[..., 0]  # of an empty row log 0
    probs = weights / numpy.where(empty, 1, total)
    if empty_row == "uniform":
        probs = numpy.where(empty, probs.dtype.type(1) / probs.dtype.type(probs.shape[-1]), probs)
    if empty_row == "nan":
        probs, lse = numpy.where(empty, numpy.nan, probs), numpy.where(empty[..., 0], numpy.nan, lse)
    stages["probs"], stages["lse"], stages["output"] = probs, lse, probs @ v


def run(case):
    contract, stages = case.contract, {}
    score = contract["score"]
    q, k = prepared(case, "q", contract, stages), prepared(case, "k", contract, stages)
    group = case.shape.q_heads // case.shape.kv_heads
    k, v = numpy.repeat(k, group, axis=1), numpy.repeat(case.numbers("v"), group, axis=1)
    factor, temperature = scale(case, score, q.dtype.type)
    with numpy.errstate(all="ignore"):  # of hidden keys and of what may overflow
        x = q @ k.swapaxes(-1, -2) * factor / temperature
        seen = visible(case, contract["mask"])
        stages["scores"] = x
        bias = case.numbers("bias") if score["bias_order"] != "none" else None
        if score["bias_order"] == "before_softcap":
            x = x + bias
        if score["softcap"] is not None:
            cap = x.dtype.type(score["softcap"])
            x = cap * numpy.tanh(x / cap)
        if score["bias_order"] == "after_softcap":
            x = x + bias
        if bias is not None:
            seen = seen & (bias != -numpy.inf)
        stages["capped"] = x
        stages["masked"] = numpy.where(seen, x, x.dtype.type(-numpy.inf))
        softmax(stages["masked"], seen, v, contract["mask"].get("empty_row", "zero"), stages)
    case.implementation = "numpy %s, %s" % (numpy.__version__, q.dtype)
    return stages


if __name__ == "__main__":
    qkcts_adapter.serve(DESCRIPTION, run)
