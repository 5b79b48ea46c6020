# SPDX-License-Identifier: Apache-2.0
"""Declared rounding points (QK-ROUND) of the slow twin: fractions and integer divisions, once more."""
from fractions import Fraction

import mpmath
from mpmath import mpf

from slow_twin_rotation import span_of
from slow_twin_rounding import FORMATS, floor_log2, fraction, half_even, power_of_two, snap

LARGEST = {"binary64": (2 - Fraction(1, 2 ** 52)) * 2 ** 1023, "binary32": (2 - Fraction(1, 2 ** 23)) * 2 ** 127,
           "binary16": Fraction(65504), "bfloat16": (2 - Fraction(1, 2 ** 7)) * 2 ** 127,
           "e4m3fn": Fraction(448), "e5m2": Fraction(57344)}
POINT_FORMATS = {**FORMATS, "e4m3fn": (4, -6, 8, 8), "e5m2": (3, -14, 15, 8)}


def nearest(z, name, saturate):
    """The number of a format nearest to z, as an exact mpf. (A neighbour's format may end in _toward_zero.)"""
    if not mpmath.isfinite(z) or abs(z) < mpf(2) ** -2400:
        return z if not mpmath.isfinite(z) else mpf(0)
    name, toward_zero = name.removesuffix("_toward_zero"), name.endswith("_toward_zero")
    precision, emin, _, _ = POINT_FORMATS[name]
    x = snap(fraction(z))
    quantum = power_of_two(max(floor_log2(x), emin) - precision + 1)
    units = abs(x) / quantum
    value = (units.numerator // units.denominator if toward_zero else half_even(units)) * quantum
    if value > LARGEST[name]:
        assert saturate, ("overflow at a point", name, z)
        value = LARGEST[name]
    return mpmath.sign(z) * mpf(value.numerator) / mpf(value.denominator)


class Points:
    def __init__(self, contract):
        self.formats = contract.get("rounding", {})

    def __call__(self, name, z):
        """z after the point of that name; z itself without one."""
        form = self.formats.get(name, "none")
        return z if form == "none" else nearest(z, form, self.formats.get("saturate", False))

    def of(self, side):
        """The points inside a norm or rotation of q, k or v: of("q")("norm_root", d)."""
        return lambda name, z: self(f"{side}_{name}", z)

    def rotates(self, side):
        return f"{side}_rope" in self.formats


def rotate_by_parts(vector, rope, wave, point):
    """The rotated vector before and after the point `rope`; products first, then sums."""
    rotated, first = span_of(rope, len(vector))
    before, after = list(vector), list(vector)
    sense = -1 if rope.get("sense") == "negative" else 1
    for i in range(rotated // 2):
        a, b = (2 * i, 2 * i + 1) if rope["pairing"] == "interleaved" else (i, i + rotated // 2)
        x, y = vector[first + a], vector[first + b]
        cosine, sine = wave(i).real, sense * wave(i).imag
        sums = (point("rope_product", x * cosine) + point("rope_product", -y * sine),
                point("rope_product", y * cosine) + point("rope_product", x * sine))
        if rope.get("layout") == "deinterleaved":
            a, b = i, i + rotated // 2
        for lane, z in zip((first + a, first + b), sums):
            before[lane], after[lane] = z, point("rope", z)
    return before, after
