# SPDX-License-Identifier: Apache-2.0
"""Every stage of a case, recomputed with mpmath; no formula is written as the reference writes it."""
import mpmath
from mpmath import mpf, mpc

from slow_twin_rotation import rotate, span_of, wave
from slow_twin_rounding_points import Points, rotate_by_parts

BITS = 2600
INF = float("inf")


def number(text):
    return float.fromhex(text)


class Array:
    """A row-major tensor of exact numbers; extents of 1 broadcast."""

    def __init__(self, document):
        self.shape = document["shape"]
        self.values = [number(text) for text in document["values"]]

    def __call__(self, *index):
        at = 0
        for i, extent in zip(index, self.shape):
            at = at * extent + (0 if extent == 1 else int(i))
        return self.values[at]


def parameter(array, axes, head, lane, width):
    return {"scalar": lambda: array(0), "head_dim": lambda: array(lane), "head": lambda: array(head),
            "head_head_dim": lambda: array(head, lane), "full_width": lambda: array(head * width + lane)}[axes]()


def normalise(vectors, norm, gain, bias, flip, point=lambda name, x: x):
    """vectors: one list per head that shares the statistic, with the head's number."""
    numbers = [x for _, vector in vectors for x in vector]
    n = len(numbers)
    mean = mpmath.fsum(numbers) / n if norm["center"] else mpf(0)
    spread = mpmath.fsum(x * x for x in numbers) - n * mean * mean
    t = spread / n if norm["statistic"] == "mean_square" else spread
    eps = mpf(norm["eps"]) * (1 + mpf(2) ** -20 if flip else 1)
    root = {"inside_root": lambda: mpmath.sqrt(t + eps), "outside_root": lambda: mpmath.sqrt(t) + eps,
            "max_root": lambda: max(mpmath.sqrt(t), eps), "max_inside": lambda: mpmath.sqrt(max(t, eps))}
    if t < 0:  # rounding of E[x^2] - E[x]^2
        t = mpf(0)
    reciprocal = point("norm_reciprocal", 1 / point("norm_root", root[norm["root"]]()))
    result = []
    for head, vector in vectors:
        width = len(vector)
        out = []
        for lane, x in enumerate(vector):
            y = point("norm_unit", (x - mean) * reciprocal)
            if norm["gain"] != "none":
                w = mpf(parameter(gain, norm["gain_axes"], head, lane, width))
                y = y * w if norm["gain"] == "w" else y + y * w
            if norm.get("bias_axes", "none") != "none":
                y += mpf(parameter(bias, norm["bias_axes"], head, lane, width))
            out.append(y)
        result.append(out)
    return result


def clipped(vector, c):
    """min(max(x, -c), c) as x minus its excess."""
    if not c:
        return vector
    c = mpf(c)
    return [mpmath.sign(x) * c if mpmath.fabs(x) > c else x for x in vector]


class Twin:
    def __init__(self, case, flip=False):
        self.flip = flip
        self.case = case
        self.contract = case["contract"]
        self.inputs = {name: Array(tensor) for name, tensor in case.get("inputs", {}).items()}
        self.B, self.Hq, self.Hkv, self.Lq, self.Lk, self.D, self.Dv = case["shape"]
        self.stages = {}
        self.before = {}  # of stages with a rounding point: their values before it
        self.products = []  # of q and k, before the point `product`
        self.points = Points(self.contract)
        self.statistics = {"entropy": [], "p_max": [], "score_max": []}
        with mpmath.workprec(BITS):
            self.seen = {(b, j): self.is_seen(b, j) for b in range(self.B) for j in range(self.Lk)}
            self.q = self.side("q", self.Hq, self.Lq, self.D)
            self.k = self.side("k", self.Hkv, self.Lk, self.D)
            self.v = self.side("v", self.Hkv, self.Lk, self.Dv)
            self.attention()

    def is_known(self, name, b, t):
        """Is the row judged? Else NaN and infinities may stand there."""
        return name == "q" or self.seen[b, t]

    def loaded(self, name, heads, length, width):
        """The vectors that enter norm and rotation; with a projection, its stage too."""
        if name != "v" and self.contract.get("projection", {}).get("form", "none") == "linear":
            return self.projected(name, heads, length, width)
        x = self.inputs[name]
        return {(b, h, t): [mpf(x(b, h, t, d)) for d in range(width)]
                for b in range(self.B) for h in range(heads) for t in range(length)}

    def projected(self, name, heads, length, width):
        x, weight = self.inputs[name + "_x"], self.inputs[name + "_weight"]
        bias = self.inputs[name + "_weight_bias"] if self.contract["projection"].get("bias") else None
        norm = self.contract.get(name + "_input_norm", {"kind": "none"})
        columns = [[mpf(weight(e, c)) for e in range(x.shape[2])] for c in range(heads * width)]
        vectors = {}
        for b in range(self.B):
            for t in range(length):
                row = [mpf(x(b, t, e)) for e in range(x.shape[2])]
                if norm["kind"] != "none" and self.is_known(name, b, t):
                    row = normalise([(0, row)], norm, self.inputs.get(name + "_x_gain"),
                                    self.inputs.get(name + "_x_bias"), self.flip,
                                    lambda place, z: self.points(f"{name}_input_{place}", z))[0]
                    row = [self.points(name + "_input_norm", y) for y in row]
                for h in range(heads):
                    vectors[b, h, t] = [
                        mpmath.fdot(row + [mpf(1)], columns[c] + [mpf(bias(c)) if bias else mpf(0)])
                        if self.is_known(name, b, t) else mpmath.nan
                        for c in range(h * width, (h + 1) * width)]
        self.before[name + "_proj"] = [y for key in sorted(vectors) for y in vectors[key]]
        for key, vector in vectors.items():
            vectors[key] = [self.points(name + "_projection", y) for y in vector]
        self.stages[name + "_proj"] = [y for key in sorted(vectors) for y in vectors[key]]
        return vectors

    def side(self, name, heads, length, width):
        norm = self.contract.get(name + "_norm", {"kind": "none"})
        rope = self.contract["rope"] if name != "v" else {"order": "none"}
        vectors = self.loaded(name, heads, length, width)

        # NaN and infinities may stand in a row that nobody sees; one number for all of them. A mean over all of v
        # needs the finite ones.
        def is_used(key):
            b, _, t = key
            return self.is_known(name, b, t) or (name == "v" and all(mpmath.isfinite(y) for y in vectors[key]))

        used = {key: is_used(key) for key in vectors}
        for key in vectors:
            if not used[key]:
                vectors[key] = [mpmath.nan] * width
        waves = {}
        point = self.points.of(name)

        def wave_at(h, position, i):
            if rope.get("angles") == "computed":
                if (position, i) not in waves:
                    waves[position, i] = wave(rope, span_of(rope, self.D)[0], position, i)
                return waves[position, i]
            planes = len(self.inputs["cos"].shape) == 3
            place = (h if rope.get("tables") == "per_head" else 0, position, i)[0 if planes else 1:]
            return mpc(self.inputs["cos"](*place), self.inputs["sin"](*place))

        def stage():
            return [y if self.is_known(name, key[0], key[2]) else mpmath.nan
                    for key in sorted(vectors) for y in vectors[key]]

        def turn():
            ids = self.inputs[name + "_position_ids"]
            after = {}
            for (b, h, t), vector in vectors.items():
                if used[b, h, t] and self.points.rotates(name):
                    vectors[b, h, t], after[b, h, t] = rotate_by_parts(
                        vector, rope, lambda i: wave_at(h, int(ids(b, t)), i), point)
                elif used[b, h, t]:
                    vectors[b, h, t] = rotate(vector, rope, lambda i: wave_at(h, int(ids(b, t)), i))
            self.before[name + "_rope"] = stage()
            vectors.update(after)
            self.stages[name + "_rope"] = stage()

        def norm_all():
            for key, vector in vectors.items():
                vectors[key] = clipped(vector, norm.get("clip_before"))
            for b in range(self.B):
                for t in range(length):
                    groups = [range(heads)] if norm.get("axis") == "full_width" else [[h] for h in range(heads)]
                    for group in groups:
                        if norm["kind"] == "none" or not all(used[b, h, t] for h in group):
                            continue
                        done = normalise([(h, vectors[b, h, t]) for h in group], norm,
                                         self.inputs.get(name + "_gain"), self.inputs.get(name + "_bias"), self.flip,
                                         point)
                        for h, vector in zip(group, done):
                            vectors[b, h, t] = vector
            multiplier = mpf(norm.get("multiplier") or 1)
            for key, vector in vectors.items():
                vectors[key] = clipped([x * multiplier for x in vector], norm.get("clip_after"))
            self.before[name + "_norm"] = stage()
            for key, vector in vectors.items():
                vectors[key] = [point("norm", y) for y in vector]
            self.stages[name + "_norm"] = stage()

        if rope["order"] == "rope_then_norm":
            turn()
        if any(norm.get(key) for key in ("clip_before", "multiplier", "clip_after")) or norm["kind"] != "none":
            norm_all()
        if rope["order"] == "norm_then_rope":
            turn()
        return vectors

    def scale(self, b, h, t):
        score = self.contract["score"]

        def learned():
            x = mpf(self.inputs["scale"](h if score.get("scale_axes") == "per_head" else 0))
            cap = score.get("scale_exp_cap")
            return mpmath.e ** (x if x < cap else mpf(cap)) if cap else x

        tau = {"inv_sqrt_head_dim": lambda: mpf(self.D) ** mpf(-0.5), "constant": lambda: mpf(score["scale_value"]),
               "inv_sqrt_scalar": lambda: mpf(score["scale_value"]) ** mpf(-0.5),
               "learned_scalar": learned}[score["scale_form"]]()
        if score.get("query_temperature", "none") == "log":
            steps = (int(self.inputs["q_position_ids"](b, t)) + int(score["query_shift"])) // int(score["query_period"])
            tau *= mpmath.log(mpmath.e * mpf(1 + steps) ** mpf(score["query_alpha"]))
        if score.get("query_temperature", "none") == "log_ratio":
            steps = int(self.inputs["q_position_ids"](b, t)) + int(score["query_shift"])
            period = int(score["query_period"])
            if steps > period:
                tau += tau * mpf(score["query_alpha"]) * (mpmath.log(steps) - mpmath.log(period))
        return tau / mpf(score["temperature"] or 1) * (1 + mpf(2) ** -40 if self.flip else 1)

    def offset(self, b):
        mask = self.contract["mask"]
        return {"top_left": lambda: 0, "bottom_right": lambda: self.Lk - self.Lq,
                "bottom_right_valid": lambda: self.inputs["kv_len"](b) - self.Lq,
                "offset": lambda: mask["offset"]}[mask.get("alignment", "top_left")]()

    def is_seen(self, b, j):
        if self.contract.get("softmax", {}).get("hidden_values", "finite") != "excluded":
            return True
        return any(self.visible(b, h, t, j) for h in range(self.Hq) for t in range(self.Lq))

    def alibi(self, b, h, t, j):
        form = self.contract["score"].get("alibi", "none")
        if form == "none":
            return mpf(0)
        place = t + self.offset(b)
        steps = {"relative": j - place, "symmetric": min(j - place, place - j), "last_key": j + 1 - self.Lk}[form]
        return mpf(self.inputs["alibi_slopes"](h)) * int(steps)

    def visible(self, b, h, t, j):
        mask = self.contract["mask"]
        place = int(t + self.offset(b))
        distance = j - place
        chunk = mask.get("chunk")
        ahead = mask["causal"] and distance > 0 and not (mask.get("prefix") and j < self.inputs["prefix_len"](b))
        window = mask["window"] or {}
        left, right = window.get("left"), window.get("right")
        return not (ahead or
                    (chunk and j // chunk != place // chunk) or
                    (mask.get("documents") and
                     self.inputs["q_document_ids"](b, t) != self.inputs["k_document_ids"](b, j)) or
                    (left is not None and left >= 0 and -distance > left) or
                    (right is not None and right >= 0 and distance > right) or
                    (mask["kv_lengths"] and j >= self.inputs["kv_len"](b)) or
                    (mask["boolean"] and not self.inputs["mask"](b, h, t, j)) or
                    ("bias" in self.inputs and self.inputs["bias"](b, h, t, j) == -INF))

    def capped(self, s, bias, linear):
        score = self.contract["score"]
        if score["bias_order"] == "before_softcap":
            s = s + bias
        if score["softcap"]:
            c = mpf(score["softcap"])
            s = s if s in (mpmath.inf, -mpmath.inf) and score["bias_order"] != "before_softcap" else (
                c * mpmath.sign(s) if mpmath.isinf(s) else self.cap(s, c))
        if score["bias_order"] == "after_softcap":
            s = s + bias
        return s + linear

    @staticmethod
    def cap(s, c):  # c tanh(s/c) by a decaying exponential
        x = mpmath.fabs(s) / c
        with mpmath.workprec(2 * BITS):
            e = mpmath.exp(-2 * x)
            if 0 < e < mpf(2) ** -1400:  # below c all the same, and so beside a bias that is added
                e = mpf(2) ** -1400
            y = c * (1 - e) / (1 + e)
        return -y if s < 0 else y

    def attention(self):
        for name in ("scores", "capped", "masked", "probs", "lse", "output"):
            self.stages[name] = []
            self.before[name] = []
        tile = self.contract.get("heads", {}).get("mapping") == "tile"
        for b in range(self.B):
            seen = [self.seen[b, j] for j in range(self.Lk)]
            for h in range(self.Hq):
                g = h % self.Hkv if tile else h * self.Hkv // self.Hq
                for t in range(self.Lq):
                    tau = self.scale(b, h, t)
                    q = self.q[b, h, t]
                    if "scaled_q" in self.points.formats:
                        q, tau = [self.points("scaled_q", x * tau) for x in q], mpf(1)
                    products = [mpmath.fdot(q, self.k[b, g, j]) if seen[j] else mpmath.nan for j in range(self.Lk)]
                    self.products += products
                    scores = [self.points("product", x) * tau for x in products]
                    self.before["scores"] += scores
                    scores = [self.points("scores", s) for s in scores]
                    bias = [mpf(self.inputs["bias"](b, h, t, j)) if "bias" in self.inputs else mpf(0)
                            for j in range(self.Lk)]
                    capped = [self.capped(s, x, self.alibi(b, h, t, j)) if seen[j] else s
                              for j, (s, x) in enumerate(zip(scores, bias))]
                    self.before["capped"] += capped
                    capped = [self.points("capped", s) for s in capped]
                    keys = [j for j in range(self.Lk) if self.visible(b, h, t, j)]
                    self.stages["scores"] += scores
                    self.stages["capped"] += capped
                    self.stages["masked"] += [capped[j] if j in keys else -mpmath.inf for j in range(self.Lk)]
                    self.row(h, capped, keys, [self.v[b, g, j] for j in range(self.Lk)])

    def row(self, h, s, keys, v):
        softmax = self.contract.get("softmax", {})
        form = softmax.get("sink", "none")
        sink = mpf(self.inputs["sink"](h)) if form != "none" else None
        # Everything in natural logarithms: a weight 2^x is e^(x ln 2).
        unit = mpmath.log(2) if softmax.get("base", "e") == "two" else mpf(1)
        lse_unit = mpmath.log(2) if softmax.get("lse_base", "e") == "two" else mpf(1)
        members = {j: s[j] * unit for j in keys}
        if form == "column":
            members["sink"] = sink * unit
        if not keys:
            self.empty_row(v, members["sink"] / lse_unit if form == "column" else None)
            return
        e = {j: mpmath.exp(x) for j, x in members.items()}
        total = mpmath.fsum(e.values())
        p = {j: e[j] / total for j in e}
        stored = {j: self.points("probs", p[j]) for j in keys}
        self.before["probs"] += [p[j] if j in keys else mpf(0) for j in range(self.Lk)]
        self.stages["probs"] += [stored[j] if j in keys else mpf(0) for j in range(self.Lk)]
        # One dominant key: log(e^s (1 + r)) = s + log1p(r), so that a tiny r is not lost beside s.
        top = max(members, key=lambda j: members[j])
        rest = mpmath.fsum(mpmath.exp(members[j] - members[top]) for j in members if j != top)
        lse = members[top] + mpmath.log1p(rest)
        self.stages["lse"].append(lse / lse_unit)
        kept = 1 - 1 / (1 + mpmath.exp(lse - sink)) if form == "post_scale" else mpf(1)
        if form == "post_scale" and sink - lse > BITS // 2:  # cancels: the same number, as a ratio
            kept = mpmath.exp(lse - sink) / (1 + mpmath.exp(lse - sink))
        self.put_output([kept * mpmath.fsum(stored[j] * v[j][d] for j in keys) for d in range(self.Dv)])
        self.statistics["entropy"].append(-mpmath.fsum(p[j] * (members[j] - lse) for j in p if p[j] != 0))
        self.statistics["p_max"].append(max(p.values()))
        self.statistics["score_max"].append(max(mpmath.fabs(s[j]) for j in keys))

    def put_output(self, output):
        self.before["output"] += output
        self.stages["output"] += [self.points("output", o) for o in output]

    def empty_row(self, v, sink_lse):
        policy = self.contract["mask"].get("empty_row", "zero")
        nan = mpmath.nan
        for statistic in self.statistics.values():
            statistic.append(nan)
        if sink_lse is not None:
            self.before["probs"] += [mpf(0)] * self.Lk
            self.stages["probs"] += [mpf(0)] * self.Lk
            self.stages["lse"].append(sink_lse)
            self.put_output([mpf(0)] * self.Dv)
            return
        p = {"zero": mpf(0), "nan": nan, "uniform": mpf(1) / self.Lk}[policy]
        self.before["probs"] += [p] * self.Lk
        p = self.points("probs", p)
        self.stages["probs"] += [p] * self.Lk
        self.stages["lse"].append(nan if policy == "nan" else -mpmath.inf)
        self.put_output([p if policy != "uniform" else mpmath.fsum(row[d] * p for row in v) for d in range(self.Dv)])
