# SPDX-License-Identifier: Apache-2.0
"""Checks the number formats of qkcts_adapter.py against NumPy's own, and the results of broken Python adapters and of
result files that were tampered with against what the program says of them.

usage: qkcts_adapter_test.py QKCTS CORPUS"""

import json
import os
import subprocess
import sys
import tempfile

import h5py
import numpy

from numpy_rounding import GRIDS, nearest
from qkcts_adapter import FORMATS, decode, encode

HERE = os.path.dirname(os.path.abspath(__file__))
SIXTEEN = numpy.arange(1 << 16, dtype="u2")


def same(a, b):
    return ((a == b) & (numpy.signbit(a) == numpy.signbit(b)) | numpy.isnan(a) & numpy.isnan(b)).all()


def check_formats():
    assert same(decode(SIXTEEN, "binary16").astype("f8"), SIXTEEN.view("f2").astype("f8"))
    assert same(decode(SIXTEEN, "bfloat16"), (SIXTEEN.astype("u4") << 16).view("f4"))
    for form in ("binary16", "bfloat16"):
        numbers = decode(SIXTEEN, form).astype("f8")
        finite = ~numpy.isnan(numbers)
        assert (encode(numbers, form)[finite] == SIXTEEN[finite]).all(), form
        assert numpy.isnan(decode(encode(numbers[~finite], form), form)).all()
        # Every midpoint goes to the even neighbour, and what lies a hair beside it to the nearer one.
        positive = SIXTEEN[numpy.isfinite(numbers) & ~numpy.signbit(numbers)]
        low, high = decode(positive[:-1], form).astype("f8"), decode(positive[1:], form).astype("f8")
        middle = (low + high) / 2
        assert (encode(middle, form) == numpy.where(positive[:-1] & 1, positive[1:], positive[:-1])).all(), form
        assert (encode(numpy.nextafter(middle, 0), form) == positive[:-1]).all(), form
        assert (encode(numpy.nextafter(middle, numpy.inf), form) == positive[1:]).all(), form
        assert (encode(-middle, form) == encode(middle, form) + 0x8000).all(), form
        largest = decode(positive[-1:], form).astype("f8")
        beyond = largest + (largest - decode(positive[-2:-1], form)) / 2
        assert numpy.isinf(decode(encode(beyond, form), form)).all()
        assert encode(numpy.nextafter(beyond, 0), form)[0] == positive[-1]
    values = numpy.array([0.1, -0.0, numpy.inf, 5e-324, 1e300])
    assert same(decode(encode(values, "binary64"), "binary64"), values)
    with numpy.errstate(over="ignore"):
        assert same(decode(encode(values, "binary32"), "binary32"), values.astype("f4"))
    for form, (unsigned, _, poison) in FORMATS.items():
        assert numpy.isnan(decode(numpy.array([poison], unsigned), form)).all(), form


def qkcts(*arguments):
    done = subprocess.run([sys.argv[1], *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stdout, done.stderr


def grid_numbers(form):
    """All positive finite numbers of a format, from its definition: fraction times power of two, subnormals first."""
    precision, smallest, largest, _ = GRIDS[form]
    steps = numpy.arange(2 ** (precision - 1), dtype="f8")
    numbers = [steps[1:] * 2.0 ** (smallest - precision + 1)]
    exponent = smallest
    while 2.0 ** exponent <= largest:
        numbers.append((2 ** (precision - 1) + steps) * 2.0 ** (exponent - precision + 1))
        exponent += 1
    numbers = numpy.concatenate(numbers)
    return numbers[numbers <= largest]


def check_points():
    """Rounding points at every number, midpoint and neighbour of one, in formats small enough to be listed."""
    for form in ("binary16", "bfloat16", "e4m3fn", "e5m2"):
        numbers = grid_numbers(form)
        largest = numbers[-1]
        assert len(numbers) == {"binary16": 31 * 1024 - 1, "bfloat16": 255 * 128 - 1, "e4m3fn": 126, "e5m2": 123}[form]
        assert same(nearest(numbers, form), numbers) and same(nearest(-numbers, form), -numbers), form
        assert nearest(numpy.float32(largest), form).dtype == numpy.float32
        low, high = numbers[:-1], numbers[1:]
        middle = (low + high) / 2
        even = numpy.where(numpy.arange(1, len(numbers)) % 2 == 0, low, high)  # the first number has the fraction 1
        assert same(nearest(middle, form), even), form
        assert same(nearest(numpy.nextafter(middle, 0), form), low), form
        assert same(nearest(numpy.nextafter(middle, numpy.inf), form), high), form
        beyond = largest + (largest - numbers[-2])
        for x, due in ((beyond, numpy.nan if form == "e4m3fn" else numpy.inf), (numpy.nan, numpy.nan), (0.0, 0.0)):
            assert same(nearest(numpy.array([x, -x]), form), numpy.array([due, -due])), (form, x)
        assert same(nearest(numpy.array([beyond, -numpy.inf]), form, True), numpy.array([largest, -largest])), form
        if form in FORMATS:  # the same as the other way to round, which goes over bit patterns
            assert same(nearest(middle, form), decode(encode(middle, form), form).astype("f8")), form
    assert nearest(numpy.array([1 + 2.0 ** -30]), "binary32")[0] == 1
    assert nearest(numpy.array([1 + 2.0 ** -30]), "binary64")[0] == 1 + 2.0 ** -30


# run() of adapters that go wrong: the verdict that is due, and a part of what must be said.
MISDEEDS = {
    "print('to stdout'); import sys; sys.stdin.read(); return honest(case)": ("pass", ""),
    "raise RuntimeError('out of luck')": ("error(protocol)", "RuntimeError: out of luck"),
    "raise qkcts_adapter.Unsupported('not today')": ("error(protocol)", "QKCTS_UNSUPPORTED"),
    "raise MemoryError('too much')": ("error(memory)", "too much"),
    "return {'lse': 0}": ("error(unwritten)", "holds no dataset output"),
    "return {'output': honest(case)['output'][0]}": ("error(protocol)", "must be (1, "),
    "bits = case.empty('output'); bits[..., 1:] = 0; return {'output': bits}": ("error(unwritten)", "never written"),
    "return {'output': honest(case)['output'] * 2}": ("fail", "output["),
    "import os; os._exit(9)": ("error(crash)", "exited with status 9"),
}


def check_misdeeds(corpus, folder):
    for number, (body, (verdict, part)) in enumerate(MISDEEDS.items()):
        script = os.path.join(folder, "misdeed.py")
        with open(script, "w") as file:
            file.write("import qkcts_adapter\nfrom template import DESCRIPTION, run as honest\n"
                       "def run(case):\n    %s\nqkcts_adapter.serve(DESCRIPTION, run)\n" % body)
        code, out, err = qkcts("run", "cmd:%s %s" % (sys.executable, script), corpus, "--case", "plain_sdpa/*binary32*",
                               "-o", folder)
        assert not err, err
        run = json.load(open(os.path.join(folder, "run.json")))
        verdicts = {case["verdict"] for case in run["cases"] if case["verdict"] != "unsupported"}
        assert verdicts == {verdict} and part in out and code == (0 if verdict == "pass" else 1), (body, verdicts, out)
    print("%d misdeeds of Python adapters have their verdicts" % len(MISDEEDS))


def change(name, value):
    def apply(file, case):
        case.attrs[name] = numpy.bytes_(value)
    return apply


def replaced(make):
    def apply(file, case):
        old = case["stages/output"][...]
        del case["stages/output"]
        make(case["stages"], old)
    return apply


def poisoned(file, case):
    bits = case["stages/output"][...].view("u4")
    bits[0, 0, 0, 0] = FORMATS["binary32"][2]
    case["stages/output"].id.write(h5py.h5s.ALL, h5py.h5s.ALL, bits, case["stages/output"].id.get_type())


def without_case(file, case):
    del file[case.name]


def of_another_corpus(file, case):
    file.attrs["corpus_digest"] = numpy.bytes_("0" * 64)


def with_another_case(file, case):
    file.copy(case, "cases/never_asked")


# Changes of a result file: exit code, and the verdict of the case or a part of the error.
TAMPERED = [
    (lambda file, case: None, 0, "pass"),
    (without_case, 5, "not_run"),
    (change("request_digest", "0" * 64), 1, "error(protocol)"),
    (change("outcome", "error(crash)"), 1, "error(crash)"),
    (change("outcome", "pass"), 1, "error(protocol)"),
    (change("outcome", "unsupported"), 1, "error(protocol)"),
    (lambda file, case: case.attrs.__delitem__("request_digest"), 3, "request_digest"),
    (replaced(lambda stages, old: None), 1, "error(unwritten)"),
    (replaced(lambda stages, old: stages.create_dataset("output", old.shape, "f4")), 1, "error(protocol)"),
    (replaced(lambda stages, old: stages.create_dataset("output", (1 << 30, 1 << 30), "f4", chunks=(1, 1 << 20))), 1,
     "error(protocol)"),
    (replaced(lambda stages, old: stages.create_dataset("output", data=old[0])), 1, "error(protocol)"),
    (replaced(lambda stages, old: stages.create_dataset("output", data=old.astype("f8"))), 1, "error(protocol)"),
    (replaced(lambda stages, old: stages.create_dataset("output", data=old.view("u4"))), 0, "pass"),
    (replaced(lambda stages, old: stages.create_dataset("output", data=old * 2)), 1, "fail"),
    (poisoned, 1, "error(unwritten)"),
    (of_another_corpus, 3, "another corpus"),
    (with_another_case, 3, "/cases/never_asked: no such case"),
]


def check_offline(corpus, folder):
    requests, results, tampered = (os.path.join(folder, name) for name in ("requests.h5", "results.h5", "tampered.h5"))
    assert qkcts("export", corpus, "-o", requests)[0] == 0
    with h5py.File(requests, "r") as file:
        names = set()
        file.visit(names.add)
        hidden = {"expected", "value_hi", "value_lo", "budget", "separation", "relations"}
        assert not any(hidden & set(name.split("/")) for name in names), "an answer was exported"
    subprocess.run([sys.executable, os.path.join(HERE, "template.py"), "--answer", requests, results], check=True)
    for apply, code_due, part in TAMPERED:
        with open(results, "rb") as source, open(tampered, "wb") as target:
            target.write(source.read())
        with h5py.File(tampered, "r+") as file:
            slugs = []
            file["cases"].visititems(lambda name, item: slugs.append(name) if "request_digest" in item.attrs else None)
            slug = sorted(slugs)[0]
            apply(file, file["cases/" + slug])
        code, out, err = qkcts("check", corpus, tampered, "-o", folder)
        assert code == code_due, (part, code, out, err)
        if code == 3:
            assert part in err and err.count("\n") == 1, err
            continue
        run = json.load(open(os.path.join(folder, "run.json")))
        verdict, = [case["verdict"] for case in run["cases"] if case["case"] == slug]
        assert verdict == part, (part, verdict, out)
    # Every case of the corpus by the complete adapter.
    subprocess.run([sys.executable, os.path.join(HERE, "numpy_attention.py"), "--answer", requests, results], check=True)
    code, out, err = qkcts("check", corpus, results, "--strict-protocol")
    assert code == 0 and "13 cases: 13 pass" in out, out + err
    with open(tampered, "r+b") as file:
        file.truncate(os.path.getsize(tampered) // 2)
    code, _, err = qkcts("check", corpus, tampered)
    assert code == 3 and err.count("\n") == 1, err
    print("%d changes of a result file are judged as they should" % len(TAMPERED))


def check_readme():
    """adapters/README.md shows template.py from its first import on."""
    with open(os.path.join(HERE, "template.py")) as file, open(os.path.join(HERE, "..", "README.md")) as readme:
        source = file.read()
        assert source[source.index("import numpy"):] in readme.read(), "adapters/README.md shows another template.py"


check_readme()
with numpy.errstate(invalid="ignore"):  # signalling NaNs are among them
    check_formats()
    check_points()
print("every number and every midpoint of the 16-bit formats, and at rounding points of the 8-bit ones")
if len(sys.argv) > 2:
    os.environ["PYTHONPATH"] = HERE
    with tempfile.TemporaryDirectory() as temporary:
        check_misdeeds(sys.argv[2], temporary)
        check_offline(sys.argv[2], temporary)
