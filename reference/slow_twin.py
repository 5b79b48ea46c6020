# SPDX-License-Identifier: Apache-2.0
"""Slow twin of the reference: recomputes every stage of dumped cases with mpmath and compares every stored bit.

usage: slow_twin.py PATH/reference_dump [flip]

It shares no code with the reference and writes the formulas differently: the variance is E[x^2] - E[x]^2, a rotation is
a complex product, the softmax is formed without any shift, roundings are integer divisions. With `flip` every third
case is recomputed under a slightly wrong epsilon, scale or mask; the comparison must then fail (the control of this
control), and the exit status says so.
"""
import json
import subprocess
import sys
from fractions import Fraction

import mpmath
from mpmath import mpf, mpc

BITS = 2600
ZERO = mpf(2) ** -2400
FORMATS = {"binary64": (53, -1022, 1023, 64), "binary32": (24, -126, 127, 32),
           "binary16": (11, -14, 15, 16), "bfloat16": (8, -126, 127, 16)}
BUDGET, BUDGET_EXACT, EXACT_CLAUSE, HIDDEN = range(4)
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


def normalise(vectors, norm, gain, bias, flip):
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
    reciprocal = 1 / root[norm["root"]]()
    result = []
    for head, vector in vectors:
        width = len(vector)
        out = []
        for lane, x in enumerate(vector):
            y = (x - mean) * reciprocal
            if norm["gain"] != "none":
                w = mpf(parameter(gain, norm["gain_axes"], head, lane, width))
                y = y * w if norm["gain"] == "w" else y + y * w
            if norm.get("bias_axes", "none") != "none":
                y += mpf(parameter(bias, norm["bias_axes"], head, lane, width))
            out.append(y)
        result.append(out)
    return result


def rotate(vector, rope, cos, sin, position):
    width = len(vector)
    rotated = rope.get("rotated") or width
    first = width - rotated if rope.get("span") == "last" else 0
    out = list(vector)
    for i in range(rotated // 2):
        a, b = (2 * i, 2 * i + 1) if rope["pairing"] == "interleaved" else (i, i + rotated // 2)
        turned = mpc(vector[first + a], vector[first + b]) * mpc(cos(position, i), sin(position, i))
        out[first + a], out[first + b] = turned.real, turned.imag
    return out


class Twin:
    def __init__(self, case, flip=False):
        self.flip = flip
        self.case = case
        self.contract = case["contract"]
        self.inputs = {name: Array(tensor) for name, tensor in case.get("inputs", {}).items()}
        self.B, self.Hq, self.Hkv, self.Lq, self.Lk, self.D, self.Dv = case["shape"]
        self.stages = {}
        self.statistics = {"entropy": [], "p_max": [], "score_max": []}
        with mpmath.workprec(BITS):
            self.q = self.side("q", self.Hq, self.Lq)
            self.k = self.side("k", self.Hkv, self.Lk)
            self.attention()

    def side(self, name, heads, length):
        norm = self.contract[name + "_norm"]
        rope = self.contract["rope"]
        x = self.inputs[name]
        vectors = {(b, h, t): [mpf(x(b, h, t, d)) for d in range(self.D)]
                   for b in range(self.B) for h in range(heads) for t in range(length)}

        def turn():
            ids = self.inputs[name + "_position_ids"]
            for (b, h, t), vector in vectors.items():
                vectors[b, h, t] = rotate(vector, rope, self.inputs["cos"], self.inputs["sin"], ids(b, t))
            self.stages[name + "_rope"] = [y for key in sorted(vectors) for y in vectors[key]]

        def norm_all():
            for b in range(self.B):
                for t in range(length):
                    groups = [range(heads)] if norm["axis"] == "full_width" else [[h] for h in range(heads)]
                    for group in groups:
                        done = normalise([(h, vectors[b, h, t]) for h in group], norm,
                                         self.inputs.get(name + "_gain"), self.inputs.get(name + "_bias"), self.flip)
                        for h, vector in zip(group, done):
                            vectors[b, h, t] = vector
            self.stages[name + "_norm"] = [y for key in sorted(vectors) for y in vectors[key]]

        if rope["order"] == "rope_then_norm":
            turn()
        if norm["kind"] != "none":
            norm_all()
        if rope["order"] == "norm_then_rope":
            turn()
        return vectors

    def scale(self):
        score = self.contract["score"]
        tau = {"inv_sqrt_head_dim": lambda: mpf(self.D) ** mpf(-0.5), "constant": lambda: mpf(score["scale_value"]),
               "inv_sqrt_scalar": lambda: mpf(score["scale_value"]) ** mpf(-0.5),
               "learned_scalar": lambda: mpf(self.inputs["scale"](0))}[score["scale_form"]]()
        return tau / mpf(score["temperature"] or 1) * (1 + mpf(2) ** -40 if self.flip else 1)

    def visible(self, b, h, t, j):
        mask = self.contract["mask"]
        offset = {"top_left": lambda: 0, "bottom_right": lambda: self.Lk - self.Lq,
                  "bottom_right_valid": lambda: self.inputs["kv_len"](b) - self.Lq,
                  "offset": lambda: mask["offset"]}[mask.get("alignment", "top_left")]()
        distance = j - (t + offset)
        window = mask["window"] or {}
        left, right = window.get("left"), window.get("right")
        return not ((mask["causal"] and distance > 0) or
                    (left is not None and left >= 0 and -distance > left) or
                    (right is not None and right >= 0 and distance > right) or
                    (mask["kv_lengths"] and j >= self.inputs["kv_len"](b)) or
                    (mask["boolean"] and not self.inputs["mask"](b, h, t, j)) or
                    ("bias" in self.inputs and self.inputs["bias"](b, h, t, j) == -INF))

    def capped(self, s, bias):
        score = self.contract["score"]
        if score["bias_order"] == "before_softcap":
            s = s + bias
        if score["softcap"]:
            c = mpf(score["softcap"])
            s = s if s in (mpmath.inf, -mpmath.inf) and score["bias_order"] != "before_softcap" else (
                c * mpmath.sign(s) if mpmath.isinf(s) else self.cap(s, c))
        if score["bias_order"] == "after_softcap":
            s = s + bias
        return s

    @staticmethod
    def cap(s, c):  # c tanh(s/c) by a decaying exponential
        x = mpmath.fabs(s) / c
        with mpmath.workprec(2 * BITS):
            e = mpmath.exp(-2 * x)
            y = c * (1 - e) / (1 + e)
        return -y if s < 0 else y

    def attention(self):
        tau = self.scale()
        for name in ("scores", "capped", "masked", "probs", "lse", "output"):
            self.stages[name] = []
        G = self.Hq // self.Hkv
        for b in range(self.B):
            for h in range(self.Hq):
                for t in range(self.Lq):
                    scores = [tau * mpmath.fdot(self.q[b, h, t], self.k[b, h // G, j]) for j in range(self.Lk)]
                    bias = [mpf(self.inputs["bias"](b, h, t, j)) if "bias" in self.inputs else mpf(0)
                            for j in range(self.Lk)]
                    capped = [self.capped(s, x) for s, x in zip(scores, bias)]
                    keys = [j for j in range(self.Lk) if self.visible(b, h, t, j)]
                    self.stages["scores"] += scores
                    self.stages["capped"] += capped
                    self.stages["masked"] += [capped[j] if j in keys else -mpmath.inf for j in range(self.Lk)]
                    v = [[mpf(self.inputs["v"](b, h // G, j, d)) for d in range(self.Dv)] for j in range(self.Lk)]
                    self.row(capped, keys, v)

    def row(self, s, keys, v):
        policy = self.contract["mask"].get("empty_row", "zero")
        if not keys:
            nan = mpmath.nan
            p = {"zero": mpf(0), "nan": nan, "uniform": mpf(1) / self.Lk}[policy]
            self.stages["probs"] += [p] * self.Lk
            self.stages["lse"].append(nan if policy == "nan" else -mpmath.inf)
            self.stages["output"] += [p if policy != "uniform" else mpmath.fsum(row[d] for row in v) / self.Lk
                                      for d in range(self.Dv)]
            for statistic in self.statistics.values():
                statistic.append(nan)
            return
        e = {j: mpmath.exp(s[j]) for j in keys}
        total = mpmath.fsum(e.values())
        p = [e[j] / total if j in keys else mpf(0) for j in range(self.Lk)]
        self.stages["probs"] += p
        # One dominant key: log(e^s (1 + r)) = s + log1p(r), so that a tiny r is not lost beside s.
        top = max(keys, key=lambda j: s[j])
        rest = mpmath.fsum(mpmath.exp(s[j] - s[top]) for j in keys if j != top)
        lse = s[top] + mpmath.log1p(rest)
        self.stages["lse"].append(lse)
        self.stages["output"] += [mpmath.fsum(p[j] * v[j][d] for j in keys) for d in range(self.Dv)]
        self.statistics["entropy"].append(-mpmath.fsum(p[j] * (s[j] - lse) for j in keys if p[j] != 0))
        self.statistics["p_max"].append(max(p))
        self.statistics["score_max"].append(max(mpmath.fabs(s[j]) for j in keys))


def fraction(z):
    """mpf to an exact Fraction; hopelessly small numbers become a small one of the same sign."""
    sign, man, exp, bc = z._mpf_
    if man and exp + bc < -4000:
        return Fraction(-1 if sign else 1, 1 << 4000)
    value = Fraction(int(man) * (1 << exp) if exp >= 0 else int(man), 1 if exp >= 0 else 1 << -exp)
    return -value if sign else value


def floor_log2(x):
    """floor(log2 |x|) of a non-zero Fraction."""
    e = abs(x.numerator).bit_length() - x.denominator.bit_length()
    power = Fraction(1 << e) if e >= 0 else Fraction(1, 1 << -e)
    return e if abs(x) >= power else e - 1


def power_of_two(e):
    return Fraction(1 << e) if e >= 0 else Fraction(1, 1 << -e)


def half_even(x):
    n, r = divmod(x.numerator, x.denominator)
    twice = 2 * r
    return n + 1 if twice > x.denominator or (twice == x.denominator and n & 1) else n


def to_pattern(x, name):
    """Fraction to (bits, exact value or +-inf), roundTiesToEven."""
    precision, emin, emax, bits = FORMATS[name]
    sign = 1 << (bits - 1) if x < 0 else 0
    x = abs(x)
    if x == 0:
        return sign, Fraction(0)
    e = max(floor_log2(x), emin)
    quantum = power_of_two(e - precision + 1)
    units = half_even(x / quantum)
    pattern = ((e - emin) << (precision - 1)) + units
    infinity = (emax - emin + 2) << (precision - 1)
    if pattern >= infinity:
        return sign | infinity, INF
    value = units * quantum
    return sign | pattern, -value if sign else value


def hi_lo(x):
    _, hi = to_pattern(x, "binary64")
    if hi == INF:
        return (INF if x > 0 else -INF), 0
    e = -1022 if hi == 0 else max(floor_log2(hi), -1022)
    return hi, half_even((x - hi) * 256 / power_of_two(e - 52))


def snap(x):
    """The boundary that x stands on up to the error of the twin, else x."""
    if x == 0:
        return x
    grid = power_of_two(max(floor_log2(x), -1022) - 62)
    t = Fraction(half_even(x / grid)) * grid
    return t if t != 0 and abs(x - t) < abs(x) * power_of_two(-1500) else x


def compare_element(z, stored, name, where):
    expected, hi_text, lo, rule, approximate_text = stored
    hi, approximate = number(hi_text), number(approximate_text)
    if mpmath.isnan(z):
        assert hi != hi and approximate != approximate, where
        return
    if mpmath.isinf(z):
        assert mpf(hi) == z and mpf(approximate) == z, (where, z, hi)
        return
    tiny = abs(z) < ZERO
    x = fraction(z)
    candidates = [snap(x)]
    if tiny:  # exactly 0 or too small to tell: the sign of a rounded zero is not checked
        candidates.append(Fraction(0))
    elif candidates[0] != x and rule != BUDGET_EXACT:
        candidates.append(x)
        # Beside a boundary by less than the twin resolves (a saturated cap, an absorbed tail).
        candidates += [candidates[0] * (1 + s * power_of_two(-1400)) for s in (1, -1)]
    for y in candidates:
        if to_pattern(y, name)[0] == expected and hi_lo(y) == (hi if abs(hi) == INF else Fraction(hi), lo):
            break
    else:
        raise AssertionError(f"{where}: twin {mpmath.nstr(z, 30)}, stored {expected:#x} {hi_text} {lo} rule {rule}; "
                             f"twin's {to_pattern(candidates[0], name)[0]:#x} {hi_lo(candidates[0])}")
    assert hi == approximate, where


def compare_tables(case):
    """cos and sin of position * theta^(-2i/R) for positions 11, 12, ... as the dump makes them, correctly rounded."""
    name = "binary64" if case["format"] == "binary64" else "binary32"
    for table in ("cos", "sin"):
        if table not in case["inputs"]:
            continue
        rows, pairs = case["inputs"][table]["shape"]
        for row in range(rows):
            for i in range(pairs):
                with mpmath.workprec(BITS):
                    angle = (row + 11) * mpf(case["contract"]["rope"]["theta"]) ** (mpf(-i) / pairs)
                    z = mpmath.cos(angle) if table == "cos" else mpmath.sin(angle)
                    stored = number(case["inputs"][table]["values"][row * pairs + i])
                    assert to_pattern(fraction(z), name)[1] == Fraction(stored), (case["slug"], table, row, i)


def compare(case, flip=False):
    twin = Twin(case, flip)
    count = 0
    if not flip:
        compare_tables(case)
    for name, stage in case["stages"].items():
        values = twin.stages[name]
        assert len(values) == len(stage["elements"]), name
        for i, (z, stored) in enumerate(zip(values, stage["elements"])):
            with mpmath.workprec(BITS):
                compare_element(z, stored, stage["format"], f"{case['slug']} {case['format']} {name}[{i}]")
            count += 1
    for name, values in twin.statistics.items():
        for i, (z, text) in enumerate(zip(values, case["statistics"][name])):
            x = number(text)
            if mpmath.isnan(z):
                assert x != x, name
            else:
                assert abs(x - z) <= max(mpf(1e-6), abs(z) * mpf(2) ** -52), (case["slug"], name, i, x, z)
    return count


def main():
    flip = sys.argv[2:] == ["flip"]
    dump = subprocess.run([sys.argv[1], "all"], check=True, capture_output=True, text=True).stdout
    elements = exact = failures = 0
    lines = dump.splitlines()
    for i, line in enumerate(lines):
        case = json.loads(line)
        if not flip:
            elements += compare(case)
            exact += case["exact_cases"]
        elif i % 3 == 0:
            try:
                compare(case, flip=True)
            except AssertionError:
                failures += 1
                continue
            print("not noticed:", case["slug"], case["format"])
    if flip:
        cases = (len(lines) + 2) // 3
        print(f"{failures} of {cases} falsified cases were noticed")
        return 0 if failures == cases else 1
    print(f"{len(lines)} cases, {elements} elements agree, {exact} of them by an exact-case rule")
    return 0 if elements > 0 and exact > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
