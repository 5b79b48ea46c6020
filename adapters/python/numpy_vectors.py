# SPDX-License-Identifier: Apache-2.0
"""From inputs to the q, k and v of the scores: projection, clamps, norm, multiplier and rotation.

One function for each group of clauses of docs/contract.md; [B, H, L, lanes] throughout. `case.fields` has every default
filled in and leaves out what has no meaning, so a field is asked for together with what its absence means."""

import numpy


def by_axes(parameter, axes, heads, lanes):
    """A gain or bias as [H, 1, lanes], to stand beside [B, H, L, lanes]."""
    if axes in ("scalar", "head_dim"):
        return parameter
    return parameter.reshape(heads, 1, 1 if axes == "head" else lanes)


def clamped(x, bound):
    """QK-CLIP."""
    return x if bound is None else numpy.minimum(numpy.maximum(x, -x.dtype.type(bound)), x.dtype.type(bound))


def norm(x, terms, gain, bias, point):
    """QK-NORM, QK-EPS, QK-GAIN. `terms(key)` is a field of this norm, `point(name, x)` one of its rounding points."""
    batch, heads, length, lanes = x.shape
    full_width = terms("axis") == "full_width"
    if full_width:  # all heads of a token are one vector
        x = x.swapaxes(1, 2).reshape(batch, 1, length, heads * lanes)
    if terms("center"):
        x = x - numpy.mean(x, axis=-1, keepdims=True)
    form = numpy.mean if terms("statistic") == "mean_square" else numpy.sum
    size, eps = form(x * x, axis=-1, keepdims=True), x.dtype.type(terms("eps"))
    divisor = {"inside_root": lambda: numpy.sqrt(size + eps), "outside_root": lambda: numpy.sqrt(size) + eps,
               "max_root": lambda: numpy.maximum(numpy.sqrt(size), eps),
               "max_inside": lambda: numpy.sqrt(numpy.maximum(size, eps))}[terms("root")]()
    divisor = point("_root", divisor)
    x = x * point("_reciprocal", 1 / divisor) if point.has("_reciprocal") else x / divisor
    x = point("_unit", x)
    if full_width:
        x = x.reshape(batch, length, heads, lanes).swapaxes(1, 2)
    if terms("gain") != "none":
        gain = by_axes(gain, terms("gain_axes"), heads, lanes)
        x = x * (gain + 1 if terms("gain") == "one_plus_w" else gain)
    return x + by_axes(bias, terms("bias_axes"), heads, lanes) if terms("bias_axes") != "none" else x


class NormPoints:
    """The rounding points inside one norm."""

    def __init__(self, points, prefix):
        self.points, self.prefix = points, prefix

    def __call__(self, name, x):
        return self.points(self.prefix + name, x)

    def has(self, name):
        return self.points.has(self.prefix + name)


def norm_of(case, section, tensor, x, points):
    """x after the norm of a section, if it has one; its gain and bias are the inputs of that tensor."""
    if case.fields.get(section + ".kind", "none") == "none":
        return x
    gain, bias = [case.numbers(tensor + name) if case.has(tensor + name) else None for name in ("_gain", "_bias")]
    # A norm before the projection has no axis: its row is one head.
    return norm(x, lambda key: case.fields.get(section + "." + key), gain, bias, NormPoints(points, section))


def projected(case, side, points):
    """QK-PROJ: rows times matrix, [B, L, E] to [B, H, L, D]."""
    x = case.numbers(side + "_x")[:, None]
    x = points(side + "_input_norm", norm_of(case, side + "_input_norm", side + "_x", x, points))[:, 0]
    x = x @ case.numbers(side + "_weight")
    if case.fields.get("projection.bias", False):
        x = x + case.numbers(side + "_weight_bias")
    batch, length, _ = x.shape
    return points(side + "_projection", x.reshape(batch, length, -1, case.shape.head_dim).swapaxes(1, 2))


def transformed(case, side, x, points):
    """QK-CLIP, QK-NORM, QK-MULT."""
    section = side + "_norm"
    x = clamped(x, case.fields.get(section + ".clip_before"))
    x = norm_of(case, section, side, x, points)
    x = x * x.dtype.type(case.fields.get(section + ".multiplier", 1))
    return points(section, clamped(x, case.fields.get(section + ".clip_after")))


def frequencies(fields, width):
    """QK-ROPE-10: radians per position of each pair, in binary64."""
    pair, theta = numpy.arange(width // 2), fields["rope.theta"]
    scaling, factor = fields.get("rope.scaling", "none"), fields.get("rope.factor", 1)
    f = theta ** (-2 * pair / width)
    if scaling == "linear":
        return f / factor
    if scaling == "ntk":
        return (theta * factor ** (width / (width - 2))) ** (-2 * pair / width)
    if scaling == "proportional":
        return numpy.where(pair < numpy.floor(factor * width / 2), f, 0)
    if scaling == "llama3":
        length, low, high = (fields["rope." + key] for key in ("original_length", "low", "high"))
        wavelength = 2 * numpy.pi / f
        share = numpy.clip((length / wavelength - low) / (high - low), 0, 1)
        return (1 - share) * f / factor + share * f
    if scaling == "yarn":
        length, low, high = (fields["rope." + key] for key in ("original_length", "low", "high"))
        first, last = (width * numpy.log(length / (2 * numpy.pi * turns)) / (2 * numpy.log(theta))
                       for turns in (high, low))
        if not fields.get("rope.untruncated", False):
            first, last = numpy.floor(first), numpy.ceil(last)
        first, last = max(first, 0), min(last, width - 1)
        last = first + 0.001 if first == last else last
        share = 1 - numpy.clip((pair - first) / (last - first), 0, 1)
        return (1 - share) * f / factor + share * f
    return f


def angles(case, side, width, real):
    """C and S of each pair of every token, [B, H or 1, L, R/2]."""
    position = case.numbers(side + "_position_ids")
    if case.fields.get("rope.angles", "table") == "computed":
        turn = position[:, None, :, None] * frequencies(case.fields, width)
        factor = case.fields.get("rope.attention_factor", 1)
        return (factor * numpy.cos(turn)).astype(real), (factor * numpy.sin(turn)).astype(real)
    tables = [case.numbers(name) for name in ("cos", "sin")]
    if case.fields.get("rope.tables", "shared") == "per_head":  # [H, P, R/2]
        return [table[:, position].swapaxes(0, 1) for table in tables]
    return [table[position][:, None] for table in tables]


def rotated(case, side, x, points):
    """QK-ROPE."""
    fields, lanes = case.fields, x.shape[-1]
    width = fields.get("rope.rotated") or lanes
    start = lanes - width if fields.get("rope.span", "first") == "last" else 0
    c, s = angles(case, side, width, x.dtype)
    if fields.get("rope.sense", "positive") == "negative":
        s = -s
    pair = start + numpy.arange(width // 2)
    halves = pair, pair + width // 2
    read = halves if fields["rope.pairing"] == "half_split" else (2 * pair - start, 2 * pair - start + 1)
    written = halves if fields.get("rope.layout", "kept") == "deinterleaved" else read
    a, b = x[..., read[0]], x[..., read[1]]

    def product(u, v):
        return points(side + "_rope_product", u * v)

    result = x.copy()
    result[..., written[0]] = points(side + "_rope", product(a, c) - product(b, s))
    result[..., written[1]] = points(side + "_rope", product(b, c) + product(a, s))
    return result


def query_or_key(case, side, points, stages):
    """q or k as the scores see it; the stages on the way are left in `stages`."""
    order = case.fields.get("rope.order", "none")
    if case.fields.get("projection.form", "none") == "none":
        x = case.numbers(side)
    else:
        x = stages[side + "_proj"] = projected(case, side, points)
    if order == "rope_then_norm":
        x = stages[side + "_rope"] = rotated(case, side, x, points)
    x = stages[side + "_norm"] = transformed(case, side, x, points)
    if order == "norm_then_rope":
        x = stages[side + "_rope"] = rotated(case, side, x, points)
    return x
