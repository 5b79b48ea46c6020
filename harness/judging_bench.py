#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""judge_stage() beside numpy.allclose() on the same arrays.

    judging_bench.py BUILD/bin/judging_bench

Both use one thread and are timed in turns, by processor time; printed are medians of the rounds and of their ratios.
"""
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


def measure(program, elements, folder):
    with subprocess.Popen([program, folder, str(elements)], text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as judge:
        count = int(judge.stdout.readline())
        got = numpy.fromfile(folder + "/got.bin", numpy.float32)
        against = {"binary32": numpy.fromfile(folder + "/expected.bin", numpy.float32),
                   "binary64": numpy.fromfile(folder + "/exact.bin", numpy.float64)}
        rounds = []
        for _ in range(ROUNDS):
            judge.stdin.write("\n")
            judge.stdin.flush()
            judged = float(judge.stdout.readline())
            rounds.append((judged, *(seconds_of(lambda: numpy.allclose(got, other, rtol=1e-5, atol=1e-6))
                                     for other in against.values())))
        judge.stdin.close()
    own = statistics.median(r[0] for r in rounds) / count * 1e9
    print(f"{count} elements: judge_stage() {own:.1f} ns each")
    for place, name in enumerate(against, start=1):
        theirs = statistics.median(r[place] for r in rounds) / count * 1e9
        ratio = statistics.median(r[place] / r[0] for r in rounds)
        print(f"  numpy.allclose() against {name}: {theirs:.1f} ns each; judging has {ratio:.2f} times its throughput")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: judging_bench.py BUILD/bin/judging_bench")
    print("numpy", numpy.__version__)
    for elements in (1 << 14, 1 << 20):
        with tempfile.TemporaryDirectory() as folder:
            measure(sys.argv[1], elements, folder)


if __name__ == "__main__":
    main()
