# SPDX-License-Identifier: Apache-2.0
"""A corpus read with h5py and NumPy alone: raw bits, numbers of every format, and the verdict of an element.

docs/vector_format.md says what is in the file; nothing here uses other code of this project."""

import h5py
import numpy

# Bits, precision with the hidden bit. The last two occur in rounding points, and as uint8 bits in arrays of one's own.
FORMATS = {"binary64": (64, 53), "binary32": (32, 24), "binary16": (16, 11), "bfloat16": (16, 8),
           "e5m2": (8, 3), "e4m3fn": (8, 4)}


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def raw_bits(dataset):
    """The stored bits: the type in memory is the type in the file, so that nothing is converted. dataset[...] would show
    bfloat16 as float32, and change the payload of a NaN on the way."""
    stored = dataset.id.get_type()
    bits = numpy.empty(dataset.shape, "u%d" % stored.get_size())
    dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, bits, stored)
    return bits


def decode(bits, form):
    """Bit patterns of a format as binary64 numbers, which hold all of them exactly."""
    size, precision = FORMATS[form]
    if form == "binary64":
        return bits.view(numpy.float64)
    wide = bits.astype(numpy.int64)
    fraction = wide & ((1 << (precision - 1)) - 1)
    exponent = (wide >> (precision - 1)) & ((1 << (size - precision)) - 1)
    bias = (1 << (size - precision - 1)) - 1
    significand = numpy.where(exponent == 0, fraction, fraction | (1 << (precision - 1)))
    value = numpy.ldexp(significand.astype(numpy.float64), numpy.maximum(exponent, 1) - bias - (precision - 1))
    if form == "e4m3fn":  # no infinity, and one NaN of either sign
        value[(wide & 127) == 127] = numpy.nan
    else:
        special = exponent == (1 << (size - precision)) - 1
        value[special] = numpy.where(fraction[special] == 0, numpy.inf, numpy.nan)
    return numpy.where(wide >> (size - 1) & 1, -value, value)


def rounded(values, form):
    """The number of a storage format nearest to each value, ties to even, as binary64."""
    if form in ("binary64", "binary32", "binary16"):
        with numpy.errstate(over="ignore"):
            return values.astype({"binary64": "f8", "binary32": "f4", "binary16": "f2"}[form]).astype("f8")
    precision, smallest, largest = 8, -126, 127  # bfloat16
    values = numpy.asarray(values, "f8")
    exponent = numpy.maximum(numpy.frexp(values)[1] - 1, smallest)
    unit = numpy.ldexp(1.0, exponent - precision + 1)
    nearest = numpy.where(numpy.isfinite(values), numpy.rint(values / unit) * unit, values)
    beyond = numpy.abs(nearest) >= numpy.ldexp(1.0, largest + 1)
    return numpy.where(beyond, numpy.copysign(numpy.inf, nearest), nearest)


def numbers(dataset, form=None):
    """A dataset of an input or a stage as binary64 (integers as they are)."""
    form = form or text(dataset.attrs["format"])
    return decode(raw_bits(dataset), form) if form in FORMATS else dataset[...]


def cases(file):
    """Groups of /cases with the attribute `contract`, by slug."""
    found = {}

    def visit(name, item):
        if isinstance(item, h5py.Group) and "contract" in item.attrs:
            found[name] = item

    file["cases"].visititems(visit)
    return found


def judged(got, stage, profile):
    """True where an element conforms; nothing else passes. `got` holds numbers of the stage's format, in the shape of the
    whole stage; `profile` is an index into the case's profiles. Also returns error / budget of the elements that have one.

    The exact value is hi + lo/256 ulp(hi). That is compared here in binary64, whose own rounding can only matter within
    2^-52 of the bound; `qkcts run` compares exactly."""
    if "rows" in stage:
        got = got.reshape(-1, got.shape[-1])[stage["rows"][...]]
    high, low, budget = stage["value_hi"][...], stage["value_lo"][...], stage["budget"][profile].astype("f8")
    rule = stage["rule"][...] if "rule" in stage else numpy.zeros(high.shape, "u1")
    trust = stage["trust"][profile] if "trust" in stage else numpy.zeros(high.shape, "u1")
    finite = numpy.isfinite(high) & numpy.isfinite(got)
    with numpy.errstate(invalid="ignore", over="ignore", divide="ignore"):
        error = numpy.abs((got - high) - low / 256 * numpy.spacing(numpy.abs(high)))
        same_class = (numpy.isnan(got) & numpy.isnan(high)) | (got == high)
        passes = numpy.where(finite, error <= budget, same_class)
        ratio = numpy.where(finite & (budget > 0) & (trust == 0), error / budget, 0)
    passes = numpy.where(rule == 4, numpy.isnan(got) | (got == high), passes)
    passes = numpy.where(rule == 5, ~numpy.isfinite(got), passes)
    if stage.name.endswith("/masked"):  # a hidden score is -inf or as good as that
        passes = numpy.where(rule == 3, got < -1e4, passes)
    open_elements = ((rule == 3) & (not stage.name.endswith("/masked"))) | (rule == 6) | (trust == 2)
    return passes | open_elements, ratio
