# SPDX-License-Identifier: Apache-2.0
"""Slow twin of the reference: recomputes every stage of dumped cases with mpmath and compares every stored bit.

usage: slow_twin.py PATH/reference_dump [flip | neighbours | points | special]

It shares no code with the reference and writes the formulas differently: the variance is E[x^2] - E[x]^2, a rotation is
a complex product, the softmax is formed without any shift, roundings are integer divisions. With `flip` every third
case is recomputed under a slightly wrong epsilon, scale or mask; the comparison must then fail (the control of this
control), and the exit status says so. With `neighbours` the cases of a clause are recomputed under a contract that
differs in this clause alone; in one of them at least that must be noticed. With `points` the cases have rounding points
drawn by lot; without them no case may agree. With `special` they have NaN and infinities in their inputs.
"""
import json
import subprocess
import sys
from fractions import Fraction

import mpmath
from mpmath import mpf

from slow_twin_attention import BITS, Twin, number
from slow_twin_neighbours import NEIGHBOURS, changed
from slow_twin_rotation import wave
from slow_twin_special import SpecialTwin, fits
from slow_twin_rounding import INF, fraction, hi_lo, power_of_two, snap, to_pattern

ZERO = mpf(2) ** -2400
BUDGET, BUDGET_EXACT, EXACT_CLAUSE, HIDDEN = range(4)


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


def compare_before(values, stage, where):
    """What a stage with a rounding point held before it, as binary64."""
    for i, text in enumerate(stage.get("before", [])):
        before = number(text)
        if mpmath.isfinite(values[i]):
            z = Fraction(0) if abs(values[i]) < ZERO else snap(fraction(values[i]))
            assert hi_lo(z)[0] == Fraction(before), (where, i, mpmath.nstr(values[i], 30), text)
        else:
            assert before != before or mpf(before) == values[i], (where, i, values[i], text)


def compare_tables(case):
    """cos and sin of position * frequency for positions 11, 12, ... as the dump makes them, correctly rounded; the
    tables of a head begin three positions after those of the head before."""
    name = "binary64" if case["format"] == "binary64" else "binary32"
    for table in ("cos", "sin"):
        if table not in case["inputs"]:
            continue
        rows, pairs = case["inputs"][table]["shape"][-2:]
        for index, text in enumerate(case["inputs"][table]["values"]):
            head, row, i = index // (rows * pairs), index // pairs % rows, index % pairs
            with mpmath.workprec(BITS):
                turned = wave(case["contract"]["rope"], 2 * pairs, row + 11 + 3 * head, i)
                z = turned.real if table == "cos" else turned.imag
                assert to_pattern(fraction(z), name)[1] == Fraction(number(text)), (case["slug"], table, index)


def compare(case, flip=False):
    twin = Twin(case, flip)
    count = 0
    if not flip:
        compare_tables(case)
    for name, stage in case["stages"].items():
        values = twin.stages[name]
        assert len(values) == len(stage["elements"]), name
        compare_before(twin.before.get(name), stage, f"{case['slug']} {case['format']} before {name}")
        for i, (z, stored) in enumerate(zip(values, stage["elements"])):
            with mpmath.workprec(BITS):
                compare_element(z, stored, stage["format"], f"{case['slug']} {case['format']} {name}[{i}]")
            count += 1
    compare_before(twin.products, case.get("products", {}), f"{case['slug']} {case['format']} before product")
    for name, values in twin.statistics.items():
        for i, (z, text) in enumerate(zip(values, case["statistics"][name])):
            x = number(text)
            if mpmath.isnan(z):
                assert x != x, name
            else:
                assert abs(x - z) <= max(mpf(1e-6), abs(z) * mpf(2) ** -52), (case["slug"], name, i, x, z)
    return count


def is_noticed(case, flip=False):
    try:
        compare(case, flip)
    except (AssertionError, KeyError):  # KeyError: the neighbour has no such stage
        return True
    return False


def check(cases):
    elements = sum(compare(case) for case in cases)
    exact = sum(case["exact_cases"] for case in cases)
    print(f"{len(cases)} cases, {elements} elements agree, {exact} of them by an exact-case rule")
    return elements > 0 and exact > 0


def check_flipped(cases):
    missed = [case for case in cases[::3] if not is_noticed(case, flip=True)]
    for case in missed:
        print("not noticed:", case["slug"], case["format"])
    print(f"{len(cases[::3]) - len(missed)} of {len(cases[::3])} falsified cases were noticed")
    return not missed


def check_neighbours(cases):
    missed = 0
    for name, change in NEIGHBOURS:
        own = [case for case in cases if case["slug"] == "sample/" + name]
        if not any(is_noticed(changed(case, change)) for case in own):
            missed += 1
            print("not noticed in", len(own), "cases:", name, changed(own[0], change)["contract"])
    print(f"{len(NEIGHBOURS) - missed} of {len(NEIGHBOURS)} neighbours were noticed")
    return missed == 0


def check_points(cases):
    print(f"{len(cases)} cases, {sum(compare(case) for case in cases)} elements agree")
    missed = [case for case in cases if not is_noticed(changed(case, lambda contract: contract.pop("rounding")))]
    # Where no row sees a key, points that are no stages have nothing to act on.
    missed = [case for case in missed if any(p != 0 for p in Twin(case).stages["probs"])]
    for case in missed:
        print("points not noticed:", case["slug"], case["format"], case["contract"]["rounding"])
    return cases and not missed


def compare_special(case):
    twin = SpecialTwin(case)
    classes = 0
    for name, stage in case["stages"].items():
        for i, (z, stored) in enumerate(zip(twin.stages[name], stage["elements"])):
            where = f"{case['slug']} {case['format']} {name}[{i}]"
            fit = fits(z, stored)
            classes += fit is not None
            assert fit is not False, (where, z, stored)
            if fit is None and stored[3] != HIDDEN:
                with mpmath.workprec(BITS):
                    compare_element(z, stored, stage["format"], where)
    return classes


def without_special_values(case):
    case = json.loads(json.dumps(case))
    for tensor in case["inputs"].values():
        tensor["values"] = [text if number(text) - number(text) == 0 else "0x1p+0" for text in tensor["values"]]
    return case


def check_special(cases):
    classes = [compare_special(case) for case in cases]
    print(f"{len(cases)} cases with NaN and infinities agree, {sum(classes)} elements by class")
    missed = 0
    for case in cases[::9]:
        try:
            compare_special(without_special_values(case))
        except AssertionError:
            continue
        missed += 1
        print("a number in the place of the special value is not noticed:", case["slug"])
    # Only a clamp makes a number of an infinity.
    return cases and missed == 0 and all(n or '"clip_' in json.dumps(case["contract"]) for n, case in zip(classes, cases))


def main():
    what = sys.argv[2] if len(sys.argv) > 2 else "check"
    dump = subprocess.run([sys.argv[1], what if what in ("points", "special") else "all"],
                          check=True, capture_output=True, text=True).stdout
    cases = [json.loads(line) for line in dump.splitlines()]
    checks = {"check": check, "flip": check_flipped, "neighbours": check_neighbours, "points": check_points,
              "special": check_special}
    return 0 if checks[what](cases) else 1


if __name__ == "__main__":
    sys.exit(main())
