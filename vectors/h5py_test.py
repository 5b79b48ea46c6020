# SPDX-License-Identifier: Apache-2.0
"""Reads a corpus with h5py alone: recomputes the logical digests as docs/vector_format.md describes them, and checks
that every expected value is the correctly rounded one. Usage: h5py_test.py CORPUS"""

import hashlib
import json
import os
import struct
import sys

import h5py
import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "python"))
from corpus import raw_bits, text  # noqa: E402

INPUTS = ["q", "k", "v", "q_gain", "k_gain", "q_bias", "k_bias", "cos", "sin", "q_position_ids", "k_position_ids",
          "scale", "mask", "bias", "kv_len", "alibi_slopes", "sink", "q_document_ids", "k_document_ids", "prefix_len",
          "v_gain", "v_bias", "q_x", "k_x", "q_weight", "k_weight", "q_weight_bias", "k_weight_bias", "q_x_gain",
          "q_x_bias", "k_x_gain", "k_x_bias"]
STAGES = ["q_proj", "k_proj", "q_norm", "k_norm", "v_norm", "q_rope", "k_rope", "scores", "capped", "masked", "probs",
          "lse", "output"]
PRECISION = {"binary64": 53, "binary32": 24, "binary16": 11, "bfloat16": 8}
SMALLEST_EXPONENT = {"binary64": -1022, "binary32": -126, "binary16": -14, "bfloat16": -126}
# Formats of rounding points alone.
PRECISION.update({"e4m3fn": 4, "e5m2": 3})
SMALLEST_EXPONENT.update({"e4m3fn": -6, "e5m2": -14})
# The rounding point of a stage itself. q_rope and k_rope are left out: their points hold for rotated lanes only.
POINTS = {"q_proj": "q_projection", "k_proj": "k_projection", "q_norm": "q_norm", "k_norm": "k_norm",
          "v_norm": "v_norm", "scores": "scores", "capped": "capped", "probs": "probs", "output": "output"}


class Digest:
    def __init__(self):
        self.hash = hashlib.sha256()

    def field(self, data):
        data = data.encode() if isinstance(data, str) else data
        self.hash.update(struct.pack("<Q", len(data)))
        self.hash.update(data)

    def number(self, value):
        self.hash.update(struct.pack("<Q", int(value)))


def rows_of(stage, shape, group):
    if "rows" in group:
        return group["rows"][...]
    batch, q_heads, kv_heads, q_len, k_len = shape[:5]
    of_keys = stage in ("k_proj", "k_norm", "k_rope", "v_norm")
    return numpy.arange(batch * (kv_heads * k_len if of_keys else q_heads * q_len), dtype=numpy.uint32)


def add_separation(digest, case):
    """How surely the case tells its contract from neighbouring ones: [neighbour, stage, profile]."""
    if "separation" not in case:
        digest.number(0)
        digest.field(b"")
        digest.field(b"")
        return
    group = case["separation"]
    names = [text(name) for name in group.attrs["neighbours"]]
    value, place = group["value"][...], group["place"][...]
    stages = [stage for stage in STAGES if stage in case["stages"]]
    assert value.shape == (len(names), len(stages), len(case.attrs["profiles"])) and place.shape == value.shape + (2,)
    assert (numpy.isnan(value) | (value >= 0)).all() and not place[~(value > 0)].any(), group.name
    digest.number(len(names))
    for name in names:
        digest.field(name)
    digest.field(value.tobytes())
    digest.field(place.tobytes())


def case_digest(slug, case, contract_digest):
    digest = Digest()
    has_jacobian = "jacobian" in case.attrs
    digest.field("qkcts-case 2" if has_jacobian else "qkcts-case 1")
    digest.field(slug)
    digest.field(text(case.attrs["contract"]))
    digest.field(contract_digest)
    digest.field(text(case.attrs["family"]))
    digest.field(text(case.attrs["description"]))
    digest.number(case.attrs["seed"][0])
    for extent in case.attrs["shape"]:
        digest.number(extent)
    digest.number(case.attrs["first_position"][0])
    digest.field(text(case.attrs["format"]))
    digest.number(len(case.attrs["profiles"]))
    for profile in case.attrs["profiles"]:
        digest.field(text(profile))
    for name in ("entropy", "p_max", "score_max") + (("jacobian",) if has_jacobian else ()):
        digest.hash.update(case.attrs[name].tobytes())
    for name in INPUTS:
        if name not in case["inputs"]:
            continue
        tensor = case["inputs"][name]
        digest.field(name)
        digest.field(text(tensor.attrs["format"]))
        digest.number(len(tensor.shape))
        for extent in tensor.shape:
            digest.number(extent)
        digest.field(raw_bits(tensor).tobytes())
    for name in STAGES:
        if name not in case["stages"]:
            continue
        group = case["stages"][name]
        count = group["expected"].size
        profiles = group["budget"].shape[0]
        rule = group["rule"][...] if "rule" in group else numpy.zeros(count, numpy.uint8)
        trust = group["trust"][...] if "trust" in group else numpy.zeros(group["budget"].shape, numpy.uint8)
        digest.field(name)
        digest.field(text(group.attrs["format"]))
        digest.field(rows_of(name, case.attrs["shape"], group).astype("<u4").tobytes())
        digest.field(raw_bits(group["expected"]).astype("<u8").tobytes())
        digest.field(group["value_hi"][...].tobytes())
        digest.field(group["value_lo"][...].tobytes())
        digest.field(rule.tobytes())
        digest.number(profiles)
        for profile in range(profiles):
            digest.field(group["budget"][profile].tobytes())
            digest.field(trust[profile].tobytes())
    if has_jacobian:
        add_separation(digest, case)
    return digest.hash.hexdigest()


def check_rounding(name, group):
    """expected is within half an ulp (and the last bits of the stored pair) of value_hi + value_lo/256 ulp."""
    form = text(group.attrs["format"])
    expected = group["expected"][...].astype(numpy.float64)
    high, low = group["value_hi"][...], group["value_lo"][...].astype(numpy.float64)
    finite = numpy.isfinite(expected) & numpy.isfinite(high)
    # Beyond the largest number of the format by half an ulp: rounded to infinity.
    with numpy.errstate(over="ignore"):
        threshold = numpy.ldexp(2 - 2.0 ** -PRECISION[form], 1 - SMALLEST_EXPONENT[form])
    overflows = numpy.isinf(expected) & (expected * high > 0) & (numpy.abs(high) >= threshold)
    same_class = (numpy.isnan(expected) == numpy.isnan(high)) & ((expected == high) | finite | overflows |
                                                                 numpy.isnan(high))
    assert same_class.all(), name
    exponent = numpy.maximum(numpy.frexp(expected[finite])[1] - 1, SMALLEST_EXPONENT[form])
    ulp = numpy.ldexp(1.0, exponent - PRECISION[form] + 1)
    fine = numpy.spacing(numpy.abs(high[finite]))
    error = numpy.abs((high[finite] - expected[finite]) + low[finite] / 256 * fine)
    assert (error <= ulp / 2 + fine / 512).all(), name


def check_point(name, group, form):
    """In a stage with a rounding point of its own value_hi is a number of that format, and nothing is left for value_lo."""
    judged = numpy.isfinite(group["value_hi"][...]) & ((group["rule"][...] != 3) if "rule" in group else True)
    values = group["value_hi"][...][judged]
    exponent = numpy.maximum(numpy.frexp(values)[1] - 1, SMALLEST_EXPONENT[form])
    units = values / numpy.ldexp(1.0, exponent - PRECISION[form] + 1)
    assert (units == numpy.rint(units)).all(), name
    assert (group["value_lo"][...][judged] == 0).all(), name


def count_nans(case):
    """NaNs in k (or what it is projected from) and v by their bits, and how many of them are not the canonical one."""
    form = text(case.attrs["format"])
    all_nans = other = 0
    for name in ("k", "k_x", "v"):
        if name not in case["inputs"]:
            continue
        bits = raw_bits(case["inputs"][name]).astype(numpy.uint64)
        size = 8 * raw_bits(case["inputs"][name]).dtype.itemsize
        infinity = ((1 << (size - PRECISION[form])) - 1) << (PRECISION[form] - 1)
        nans = bits[(bits & ((1 << (size - 1)) - 1)) > infinity]
        all_nans += nans.size
        other += (nans != infinity | (1 << (PRECISION[form] - 2))).sum()
    return all_nans, other


def relations_of(stored, cases):
    """Slug and digest of every relation; each names cases of the file."""
    relations = {}

    def visit(prefix, above):
        for name, group in above.items():
            slug = prefix + name
            if "json" not in group.attrs:
                visit(slug + "/", group)
                continue
            said = text(group.attrs["json"])
            relations[slug] = hashlib.sha256(said.encode()).hexdigest()
            assert relations[slug] == text(group.attrs["digest"]), slug
            assert all(case in cases for case in json.loads(said)["cases"]), slug

    if "relations" in stored:
        visit("", stored["relations"])
    return relations


def main(path):
    cases = {}
    nans = payloads = 0
    stored = h5py.File(path, "r")
    assert text(stored.attrs["format"]) == "qkcts-vectors"
    version = stored.attrs["format_version"][0]
    assert version in (1, 2, 3, 4)
    contracts = {name: text(group.attrs["digest"]) for name, group in stored["contracts"].items()}
    profiles = {}  # those that are not shipped
    for name, group in stored.get("profiles", {}).items():
        profiles[name] = hashlib.sha256(text(group.attrs["json"]).encode()).hexdigest()
        assert profiles[name] == text(group.attrs["digest"]), name
    roundings = {name: json.loads(text(group.attrs["json"])).get("rounding", {})
                 for name, group in stored["contracts"].items()}
    points = 0

    def visit(prefix, group):  # visititems() would not follow the external links of a master file
        for name, item in group.items():
            if isinstance(item, h5py.Dataset):
                assert len(item.attrs["dimensions"]) == len(item.shape), item.name
            else:
                if "contract" in item.attrs:
                    cases[prefix + name] = item
                visit(prefix + name + "/", item)

    visit("", stored["cases"])
    assert (version == 4) == any("jacobian" in case.attrs for case in cases.values())
    total = Digest()
    relations = relations_of(stored, cases)
    total.field("qkcts-corpus 2" if relations else "qkcts-corpus 1")
    total.field(text(stored.attrs["suite"]))
    total.number(stored.attrs["seed"][0])
    total.number(len(contracts))
    for name in sorted(contracts):
        total.field(name)
        total.field(contracts[name])
    total.number(len(cases))
    for slug in sorted(cases):
        case = cases[slug]
        digest = case_digest(slug, case, contracts[text(case.attrs["contract"])])
        assert digest == text(case.attrs["digest"]), "digest of " + slug
        total.field(slug)
        total.field(digest)
        nans, payloads = (a + b for a, b in zip((nans, payloads), count_nans(case)))
        rounding = roundings[text(case.attrs["contract"])]
        for name, group in case["stages"].items():
            check_rounding(slug + " " + name, group)
            form = rounding.get(POINTS.get(name), "none")
            if form != "none":
                check_point(slug + " " + name, group, form)
                points += 1
    if profiles:
        total.field("profiles")
        total.number(len(profiles))
        for name in sorted(profiles):
            total.field(name)
            total.field(profiles[name])
    if relations:
        total.field("relations")
        total.number(len(relations))
        for slug in sorted(relations):
            total.field(slug)
            total.field(relations[slug])
    assert total.hash.hexdigest() == text(stored.attrs["digest"]), "digest of the corpus"
    assert cases
    separated = sum("separation" in case for case in cases.values())
    formats = {text(case.attrs["format"]) for case in cases.values()}
    print("%d cases in %s: digests and roundings agree; %d NaNs in k and v, %d of them not canonical; %d stages hold "
          "numbers of a rounding point; %d cases with separations; %d relations" %
          (len(cases), ", ".join(sorted(formats)), nans, payloads, points, separated, len(relations)))


main(sys.argv[1])
