# SPDX-License-Identifier: Apache-2.0
"""Rotary embedding of the slow twin: complex products, frequencies by wavelengths."""
from fractions import Fraction

import mpmath
from mpmath import mpf, mpc


def span_of(rope, width):
    rotated = rope.get("rotated") or width
    return rotated, width - rotated if rope.get("span") == "last" else 0


def rotate(vector, rope, wave):
    """wave(i) is m e^(i angle) of pair i."""
    rotated, first = span_of(rope, len(vector))
    out = list(vector)
    for i in range(rotated // 2):
        a, b = (2 * i, 2 * i + 1) if rope["pairing"] == "interleaved" else (i, i + rotated // 2)
        turn = mpmath.conj(wave(i)) if rope.get("sense") == "negative" else wave(i)
        turned = mpc(vector[first + a], vector[first + b]) * turn
        if rope.get("layout") == "deinterleaved":
            a, b = i, i + rotated // 2
        out[first + a], out[first + b] = turned.real, turned.imag
    return out


def frequency(rope, rotated, i):
    """Radians per position of pair i, by wavelengths where the scaling speaks of them."""
    theta = mpf(rope["theta"])
    scaling = rope.get("scaling", "none")
    s = mpf(rope.get("factor") or 1)
    if scaling == "ntk":
        theta *= s ** (mpf(rotated) / (rotated - 2))
    wavelength = 2 * mpmath.pi * theta ** (mpf(2 * i) / rotated)
    if scaling == "linear":
        wavelength *= s
    if scaling == "proportional" and i >= int(Fraction(float(s)) * rotated // 2):
        return mpf(0)
    f = 2 * mpmath.pi / wavelength
    if scaling == "llama3":
        longest, low, high = mpf(rope["original_length"]), mpf(rope["low"]), mpf(rope["high"])
        if wavelength < longest / high:
            return f
        if wavelength > longest / low:
            return f / s
        m = (longest / wavelength - low) / (high - low)
        return f / s + m * (f - f / s)
    if scaling == "yarn":
        def end(turns):  # the index at which a pair turns so often: theta^(2x/R) = L0 / (2 pi turns)
            return mpf(rotated) / 2 * mpmath.log(mpf(rope["original_length"]) / (2 * mpmath.pi * mpf(turns)), theta)
        a, b = end(rope["high"]), end(rope["low"])
        if not rope.get("untruncated"):
            a, b = mpmath.floor(a), mpmath.ceil(b)
        a, b = max(a, mpf(0)), min(b, mpf(rotated - 1))
        if a == b:
            b += mpf("0.001")
        ramp = min(max((i - a) / (b - a), mpf(0)), mpf(1))
        return f + ramp * (f / s - f)
    return f


def wave(rope, rotated, position, i):
    return mpf(rope.get("attention_factor") or 1) * mpmath.expj(position * frequency(rope, rotated, i))
