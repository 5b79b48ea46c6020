# SPDX-License-Identifier: Apache-2.0
"""Everything an adapter in Python needs beside its kernel: `serve(description, run)`. Only h5py and numpy.

`description` is the dictionary of docs/adapter_abi.md, section describe. `run(case)` returns {stage name: array}; see
Case. template.py is the smallest adapter. The same program answers `qkcts run 'cmd:python3 it.py' core.h5`, and, on a
machine without qkcts, `python3 it.py --answer requests.h5 results.h5`."""

import collections
import json
import os
import sys
import traceback

import h5py
import numpy

PROTOCOL = 1
VERSION = numpy.array([1], "u4")  # of request and result files
Shape = collections.namedtuple("Shape", "batch q_heads kv_heads q_len k_len head_dim v_head_dim")

# Format -> unsigned type of its bits, float type of its numbers, bits that say "never written" (a signalling NaN).
FORMATS = {"binary64": ("u8", "f8", 0x7FF4C3D1A5B6E7F9), "binary32": ("u4", "f4", 0x7FA5C3D1),
           "binary16": ("u2", "f4", 0x7D2B), "bfloat16": ("u2", "f4", 0x7FA5)}


class Unsupported(Exception):
    """Raised by `run` for a case that the description does not exclude but the kernel cannot do."""


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def raw_bits(dataset):
    """The stored bits. The type in memory is the type in the file, so that HDF5 converts nothing."""
    stored = dataset.id.get_type()
    bits = numpy.empty(dataset.shape, "u%d" % stored.get_size())
    dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, bits, stored)
    return bits


def decode(bits, form):
    """Bit patterns as numbers: binary64 as such, everything else as binary32, which holds all of them exactly."""
    if form == "bfloat16":
        return (bits.astype("u4") << 16).view("f4")
    if form == "binary16":
        with numpy.errstate(invalid="ignore"):
            return bits.view("f2").astype("f4")
    return bits.view("f8" if form == "binary64" else "f4")


def encode(numbers, form):
    """The bits of the nearest number of the format, ties to even, in one rounding from whatever float type is given."""
    wide = numpy.asarray(numbers, "f8")
    with numpy.errstate(over="ignore", invalid="ignore", under="ignore"):
        if form != "bfloat16":
            return wide.astype({"binary64": "f8", "binary32": "f4", "binary16": "f2"}[form]).view(FORMATS[form][0])
        single = wide.astype("f4")
        back = single.astype("f8")
        # Rounded to odd first (towards zero, last bit set where something was lost), so that the second rounding is
        # the only one that counts.
        bits = single.view("u4") - (numpy.abs(back) > numpy.abs(wide))
        bits = (bits | ((back != wide) & ~numpy.isnan(wide))).astype("u4")
    nearest = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return numpy.where(numpy.isnan(wide), (bits >> 16) | 0x40, nearest).astype("u2")


class Case:
    """One request. `contract` is its JSON as a dictionary, `fields` the same as {"q_norm.root": "inside_root", ...} with
    every default filled in, `format` the storage format, `shape` a Shape, `stages` what is asked for. A kernel may set
    `implementation` to what really ran."""

    def __init__(self, group, contract):
        self.group = group
        self.contract = json.loads(text(contract.attrs["json"]))
        self.fields = json.loads(text(contract.attrs["fields"]))
        self.by_claim = json.loads(text(contract.attrs["by_claim"]))
        self.format = text(group.attrs["format"])
        self.shape = Shape(*(int(extent) for extent in group.attrs["shape"]))
        self.stages = [text(name) for name in group.attrs["stages"]]
        self.implementation = None

    def has(self, name):
        return name in self.group["inputs"]

    def bits(self, name):
        """An input as unsigned integers of its width."""
        return raw_bits(self.group["inputs"][name])

    def numbers(self, name):
        """An input as binary32 (binary64 in a binary64 case, int32, bool), without any rounding."""
        form = text(self.group["inputs"][name].attrs["format"])
        if form in FORMATS:
            return decode(self.bits(name), form)
        return self.bits(name).view("i4" if form == "int32" else "bool")

    def stage_format(self, stage):
        if stage in ("scores", "capped", "masked", "lse"):
            return "binary64" if self.format == "binary64" else "binary32"
        return self.format

    def stage_shape(self, stage):
        s = self.shape
        of_keys = stage in ("k_proj", "k_norm", "k_rope", "v_norm")
        leading = (s.batch, s.kv_heads if of_keys else s.q_heads, s.k_len if of_keys else s.q_len)
        if stage == "lse":
            return leading
        if stage in ("scores", "capped", "masked", "probs"):
            return leading + (s.k_len,)
        return leading + (s.v_head_dim if stage in ("output", "v_norm") else s.head_dim,)

    def empty(self, stage):
        """Bits of a stage to be filled in: what is not, is reported as never written."""
        unsigned, _, poison = FORMATS[self.stage_format(stage)]
        return numpy.full(self.stage_shape(stage), poison, unsigned)


def stage_bits(case, stage, array):
    """What `run` returned for a stage: bits as they are, numbers rounded once."""
    form = case.stage_format(stage)
    array = numpy.asarray(array)
    if array.shape != case.stage_shape(stage):
        raise ValueError("%s: shape %s, must be %s" % (stage, array.shape, case.stage_shape(stage)))
    return array if array.dtype == FORMATS[form][0] else encode(array, form)


def fixed(value):
    """Text of fixed length, the only kind that a result file may hold."""
    return numpy.bytes_(str(value).encode()[:4000] or b"\0")


def write_answer(results, slug, case, description, outputs=None, outcome=None, message=""):
    group = results.create_group("cases/" + slug)
    group.attrs["request_digest"] = case.group.attrs["request_digest"]
    group.attrs["implementation"] = fixed(
        case.implementation or "%s %s" % (description["name"], description["version"]))
    if outcome:
        group.attrs["outcome"], group.attrs["message"] = fixed(outcome), fixed(message)
    stages = group.create_group("stages")
    for stage in case.stages if outputs is not None else ():
        if stage not in outputs:
            continue
        bits = stage_bits(case, stage, outputs[stage])
        form = case.stage_format(stage)
        # numpy has no bfloat16: its bits stand there as uint16.
        stages[stage] = bits if form == "bfloat16" else bits.view("f%d" % bits.dtype.itemsize)
        stages[stage].attrs["format"] = fixed(form)


def computed(case, slug, results, description, run):
    """Runs one case and writes its answer; returns status and message."""
    try:
        write_answer(results, slug, case, description, run(case))
        return "ok", ""
    except Unsupported as reason:
        return "unsupported", str(reason)
    except MemoryError as reason:
        return "out_of_memory", str(reason)
    except Exception as reason:  # whatever a kernel throws is its verdict, not the end of the run
        traceback.print_exc()
        return "internal", "%s: %s" % (type(reason).__name__, reason)


def new_results(path):
    results = h5py.File(path, "w")
    results.attrs["format"], results.attrs["format_version"] = fixed("qkcts-results"), VERSION
    results.create_group("cases")
    return results


def requests_in(file):
    """Slug -> Case."""
    found = {}

    def visit(name, item):
        if isinstance(item, h5py.Group) and "contract" in item.attrs:
            found[name] = Case(item, file["contracts"][text(item.attrs["contract"])])

    file["cases"].visititems(visit)
    return found


def unsupported_reason(description, case):
    """Why the case lies outside of the description, by the rules of docs/adapter_abi.md; empty if it lies inside."""
    if case.format not in description["formats"]:
        return "format " + case.format
    supports = description.get("supports", {})
    for path, value in case.fields.items():
        if path not in supports and path in case.by_claim:
            return "%s = %s (not declared in supports)" % (path, json.dumps(value))
        if path in supports and value not in supports[path] and "*" not in supports[path]:
            return "%s = %s" % (path, json.dumps(value))
    for name, limit in description.get("limits", {}).items():
        extent = getattr(case.shape, name)
        if not limit.get("min", 0) <= extent <= limit.get("max", extent) or extent % limit.get("multiple_of", 1):
            return "%s %d" % (name, extent)
    return ""


def answer_offline(requests, results, description, run):
    """Fills a result file from a request file; `qkcts check` judges it. Cases outside of the description are left out."""
    partial = results + ".partial"
    with h5py.File(requests, "r") as asked, new_results(partial) as file:
        file.attrs["corpus_digest"] = asked.attrs["corpus_digest"]
        file.attrs["description"] = numpy.bytes_(json.dumps(description).encode())
        for slug, case in sorted(requests_in(asked).items()):
            if unsupported_reason(description, case):
                continue
            status, message = computed(case, slug, file, description, run)
            if status != "ok":
                if slug in file["cases"]:  # half of it
                    del file["cases/" + slug]
                write_answer(file, slug, case, description, None, status, message)
    os.replace(partial, results)


def answer_run(order, description, run):
    """The only case of a request file of the host's."""
    with h5py.File(order["request"], "r") as asked, new_results(order["result"]) as file:
        (slug, case), = requests_in(asked).items()
        return computed(case, slug, file, description, run)


def serve(description, run, probe=None):
    """Answers the host until it says stop. `probe()` returns why the runtime is not usable here, or an empty text."""
    if sys.argv[1:2] == ["--answer"]:
        return answer_offline(sys.argv[2], sys.argv[3], description, run)
    # The conversation gets descriptors of its own: what a library prints goes to stderr, what it reads is empty.
    orders, answers = os.fdopen(os.dup(0), "r"), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for line in orders:
        order = json.loads(line)
        answer = {"seq": order["seq"], "status": "ok"}
        if order["do"] == "stop":
            return None
        if order["do"] == "hello":
            answer["protocol"] = PROTOCOL
        elif order["do"] == "describe":
            reason = probe() if probe else ""
            answer.update({"status": "unavailable", "message": reason} if reason else {}, description=description)
        else:
            answer["status"], answer["message"] = answer_run(order, description, run)
            answer["message"] = answer["message"][:1000]
        sys.stdout.flush()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    return None
