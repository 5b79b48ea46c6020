#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""judge_stage() beside numpy.allclose() on the same arrays.

    judging_bench.py BUILD/bin/judging_bench [CORPUS.h5]

Outputs of many elements, and all stages of the binary32 cases of a corpus, each as often as it has profiles. Both use
one thread and are timed in turns, by processor time; printed are medians of the rounds and of their ratios.
"""
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

ROUNDS = 21


def seconds_of(task):
    start = time.process_time()
    task()
    return time.process_time() - start


def pairs_of(folder, name, kind):
    """The arrays that are judged and those beside them, as often as they are judged."""
    got = numpy.fromfile(folder / "got.bin", numpy.float32)
    other = numpy.fromfile(folder / name, kind)
    pairs, start = [], 0
    for line in (folder / "arrays.txt").read_text().splitlines():
        elements, times = map(int, line.split())
        pairs += [(got[start:start + elements], other[start:start + elements])] * times
        start += elements
    return pairs


def compare(pairs):
    for got, other in pairs:
        numpy.allclose(got, other, rtol=1e-5, atol=1e-6)


def measure(program, what):
    with tempfile.TemporaryDirectory() as name, subprocess.Popen(
            [program, name, what], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as judge:
        judge.stdout.readline()
        folder = pathlib.Path(name)
        against = {"binary32": pairs_of(folder, "expected.bin", numpy.float32),
                   "binary64": pairs_of(folder, "exact.bin", numpy.float64)}
        count = sum(len(got) for got, _ in against["binary32"])
        rounds = []
        for _ in range(ROUNDS):
            judge.stdin.write("\n")
            judge.stdin.flush()
            judged = float(judge.stdout.readline())
            rounds.append((judged, *(seconds_of(lambda: compare(pairs)) for pairs in against.values())))
        judge.stdin.close()
    own = statistics.median(r[0] for r in rounds) / count * 1e9
    arrays = len(against["binary32"])
    print(f"{count} elements in {arrays} array{'' if arrays == 1 else 's'}: judge_stage() {own:.1f} ns each")
    for place, kind in enumerate(against, start=1):
        theirs = statistics.median(r[place] for r in rounds) / count * 1e9
        ratio = statistics.median(r[place] / r[0] for r in rounds)
        print(f"  numpy.allclose() against {kind}: {theirs:.1f} ns each; judging has {ratio:.2f} times its throughput")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: judging_bench.py BUILD/bin/judging_bench [CORPUS.h5]")
    print("numpy", numpy.__version__)
    for what in ["4096", "16384", "65536", "1048576", *sys.argv[2:]]:
        measure(sys.argv[1], what)


if __name__ == "__main__":
    main()
