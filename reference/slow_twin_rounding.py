# SPDX-License-Identifier: Apache-2.0
"""Roundings of the slow twin: exact fractions and integer divisions."""
from fractions import Fraction

FORMATS = {"binary64": (53, -1022, 1023, 64), "binary32": (24, -126, 127, 32),
           "binary16": (11, -14, 15, 16), "bfloat16": (8, -126, 127, 16)}
INF = float("inf")


def fraction(z):
    """mpf to an exact Fraction; hopelessly small numbers become a small one of the same sign."""
    sign, man, exp, bc = z._mpf_
    if man and exp + bc < -4000:
        return Fraction(-1 if sign else 1, 1 << 4000)
    value = Fraction(int(man) * (1 << exp) if exp >= 0 else int(man), 1 if exp >= 0 else 1 << -exp)
    return -value if sign else value


def floor_log2(x):
    """floor(log2 |x|) of a non-zero Fraction."""
    n, d = abs(x.numerator), x.denominator
    e = n.bit_length() - d.bit_length()
    return e if (n >= d << e if e >= 0 else n << -e >= d) else e - 1


def power_of_two(e):
    return Fraction(1 << e) if e >= 0 else Fraction(1, 1 << -e)


def half_even(x, e=0):
    """x / 2^e as an integer, ties to even. (Shifts: a quotient of Fractions would look for common factors.)"""
    n, d = (x.numerator, x.denominator << e) if e >= 0 else (x.numerator << -e, x.denominator)
    n, r = divmod(n, d)
    twice = 2 * r
    return n + 1 if twice > d or (twice == d and n & 1) else n


def to_pattern(x, name):
    """Fraction to (bits, exact value or +-inf), roundTiesToEven."""
    precision, emin, emax, bits = FORMATS[name]
    sign = 1 << (bits - 1) if x < 0 else 0
    x = abs(x)
    if x == 0:
        return sign, Fraction(0)
    e = max(floor_log2(x), emin)
    units = half_even(x, e - precision + 1)
    pattern = ((e - emin) << (precision - 1)) + units
    infinity = (emax - emin + 2) << (precision - 1)
    if pattern >= infinity:
        return sign | infinity, INF
    value = units * power_of_two(e - precision + 1)
    return sign | pattern, -value if sign else value


def hi_lo(x):
    _, hi = to_pattern(x, "binary64")
    if hi == INF:
        return (INF if x > 0 else -INF), 0
    e = -1022 if hi == 0 else max(floor_log2(hi), -1022)
    return hi, half_even(x - hi, e - 60)  # in 1/256 of the unit 2^(e - 52)


def snap(x):
    """The boundary that x stands on up to the error of the twin, else x."""
    if x == 0:
        return x
    grid = max(floor_log2(x), -1022) - 62
    t = half_even(x, grid) * power_of_two(grid)
    if t == 0 or t == x:
        return x
    off = abs(x - t)
    return t if floor_log2(off) <= floor_log2(x) - 1500 and off < abs(x) * power_of_two(-1500) else x
