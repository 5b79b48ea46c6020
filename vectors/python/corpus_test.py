# SPDX-License-Identifier: Apache-2.0
"""Checks the number formats of corpus.py against NumPy's own and against the largest numbers and NaNs of each."""

import numpy

from corpus import FORMATS, decode, rounded

SIXTEEN = numpy.arange(1 << 16, dtype="u2")
EIGHT = numpy.arange(256, dtype="u1")


def same(a, b):
    return ((a == b) & (numpy.signbit(a) == numpy.signbit(b)) | numpy.isnan(a) & numpy.isnan(b)).all()


def check_formats():
    with numpy.errstate(invalid="ignore"):
        assert same(decode(SIXTEEN, "binary16"), SIXTEEN.view("f2").astype("f8"))
        single = (SIXTEEN.astype("u4") << 16)
        assert same(decode(SIXTEEN, "bfloat16"), single.view("f4").astype("f8"))
        assert same(decode(single | 0x8001, "binary32"), (single | 0x8001).view("f4").astype("f8"))
    doubles = numpy.array([0.1, -0.0, numpy.inf, 5e-324])
    assert same(decode(doubles.view("u8"), "binary64"), doubles)
    # An 8-bit e5m2 is the upper half of a binary16.
    assert same(decode(EIGHT, "e5m2"), decode(EIGHT.astype("u2") << 8, "binary16"))
    e4m3fn = decode(EIGHT, "e4m3fn")
    assert numpy.nanmax(e4m3fn) == 448 and numpy.isnan(e4m3fn).sum() == 2 and not numpy.isinf(e4m3fn).any()
    assert e4m3fn[1] == 2.0 ** -9 and e4m3fn[0x38] == 1 and e4m3fn[0xb9] == -1.125
    assert set(FORMATS) == {"binary64", "binary32", "binary16", "bfloat16", "e5m2", "e4m3fn"}


def check_rounding():
    for form in ("binary16", "bfloat16"):
        every = decode(SIXTEEN, form)
        assert same(rounded(every, form), every), form
        finite = numpy.sort(every[numpy.isfinite(every) & (every >= 0) & ~numpy.signbit(every)])
        middle = (finite[1:] + finite[:-1]) / 2
        even = rounded(middle, form)
        assert ((even == finite[:-1]) | (even == finite[1:])).all()
        low, high = rounded(numpy.nextafter(middle, 0), form), rounded(numpy.nextafter(middle, numpy.inf), form)
        assert (low == finite[:-1]).all() and (high == finite[1:]).all(), form
        assert (even == numpy.where(numpy.arange(len(middle)) % 2 == 0, finite[:-1], finite[1:])).all(), form
        beyond = finite[-1] + (finite[-1] - finite[-2]) / 2
        assert rounded(numpy.array([beyond]), form)[0] == numpy.inf
        assert rounded(numpy.array([numpy.nextafter(beyond, 0)]), form)[0] == finite[-1]


check_formats()
check_rounding()
print("every number of every format, and every midpoint of the 16-bit ones")
