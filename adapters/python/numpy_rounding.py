# SPDX-License-Identifier: Apache-2.0
"""QK-ROUND: the points at which a contract says that a value is rounded."""

import numpy

# Bits of the significand, smallest exponent of a normal number, largest number, whether there is an infinity.
GRIDS = {"binary32": (24, -126, (2 - 2.0 ** -23) * 2.0 ** 127, True), "binary16": (11, -14, 65504.0, True),
         "bfloat16": (8, -126, (2 - 2.0 ** -7) * 2.0 ** 127, True), "e4m3fn": (4, -6, 448.0, False),
         "e5m2": (3, -14, 57344.0, True)}


def nearest(x, form, saturate=False):
    """x rounded to the format, ties to even, in the type that it has."""
    if form in ("none", "binary64"):
        return x
    precision, smallest, largest, has_infinity = GRIDS[form]
    wide = numpy.asarray(x, "f8")
    with numpy.errstate(all="ignore"):  # NaN and infinities pass, and overflow is what the last lines are for
        exponent = numpy.maximum(numpy.frexp(wide)[1] - 1, smallest)
        quantum = exponent - (precision - 1)
        # Counted in quanta of its binade the value becomes an integer; both scalings are exact.
        result = numpy.ldexp(numpy.rint(numpy.ldexp(wide, -quantum)), quantum)
        beyond = largest if saturate else numpy.inf if has_infinity else numpy.nan
        result = numpy.where(numpy.abs(result) > largest, numpy.copysign(beyond, wide), result)
        return result.astype(numpy.asarray(x).dtype)


class Points:
    """The points of one contract: `points("q_norm", x)` is x behind its point."""

    def __init__(self, fields):
        self.formats = {path.partition(".")[2]: value for path, value in fields.items() if path.startswith("rounding.")}
        self.saturate = self.formats.pop("saturate", False)

    def __call__(self, name, x):
        return nearest(x, self.formats.get(name, "none"), self.saturate)

    def has(self, name):
        return self.formats.get(name, "none") != "none"
