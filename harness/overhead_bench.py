#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the harness itself takes, with an adapter that computes nothing.

    overhead_bench.py BUILD/bin/qkcts BUILD/harness/test_adapters/libidle.so CORE.h5

Prints the time of runs on the core corpus, and the memory of the host in runs of corpora of 1,000 and of 10,000 cases
with few elements each, which are generated first, and of what renders the run.json of the latter.
"""
import itertools
import json
import os
import statistics
import sys
import tempfile
import time

CASES = 10000


def most_resident(child):
    """MiB that the process itself held at most. What wait4() says counts its children too, and one of them maps the
    whole corpus to look at it."""
    try:
        with open(f"/proc/{child}/status", encoding="ascii") as status:
            return max((int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM")), default=0)
    except OSError:
        return 0


def run(program, *arguments):
    """Seconds of wall clock, of processor time with the worker's, and MiB resident at most, of the program."""
    start = time.monotonic()
    child = os.posix_spawn(program, [program, *arguments], os.environ,
                           file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    most, ended = 0, 0
    while not ended:
        time.sleep(0.02)
        most = max(most, most_resident(child))
        ended, status, usage = os.wait4(child, os.WNOHANG)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 1):  # an adapter that computes nothing does not conform
        sys.exit(f"{program} {' '.join(arguments)}: exit code {code}")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, most


def core(program, adapter, corpus):
    for variants in ("none", "all"):
        runs = [run(program, "run", adapter, corpus, "--variants", variants) for _ in range(5)]
        wall, processor = (statistics.median(r[i] for r in runs) for i in (0, 1))
        print(f"{corpus}, --variants {variants}: {wall:.2f} s, {processor:.2f} s of processor time")


def memory(program, adapter, folder):
    for cases in (CASES // 10, CASES):
        shapes = itertools.product(range(1, 21), range(1, 26), range(1, 21))
        plan = {"schema": "qkcts-plan/1", "suite": "many", "seed": 1,
                "groups": [{"contracts": ["plain_sdpa"], "families": ["gaussian"], "formats": ["binary32"],
                            "shapes": [f"1,1,1,{q},{k},{d},2" for q, k, d in itertools.islice(shapes, cases)]}]}
        with open(folder + "/plan.json", "w", encoding="utf-8") as file:
            json.dump(plan, file)
        corpus = f"{folder}/many{cases}.h5"
        run(program, "generate", folder + "/plan.json", "-o", corpus)
        for more in ((), ("-o", folder + "/reports")):
            wall, _, most = run(program, "run", adapter, corpus, "--variants", "none", *more)
            print(f"{cases} cases{', all reports' if more else ''}: {most:.0f} MiB, {wall:.1f} s")
    record = folder + "/reports/run.json"
    wall, _, most = run(program, "report", record, "-o", folder + "/again")
    print(f"report of {CASES} cases: {most:.0f} MiB, {wall:.1f} s")


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: overhead_bench.py BUILD/bin/qkcts BUILD/harness/test_adapters/libidle.so CORE.h5")
    program, adapter, corpus = (os.path.abspath(path) for path in sys.argv[1:])
    core(program, adapter, corpus)
    with tempfile.TemporaryDirectory() as folder:
        memory(program, adapter, folder)


if __name__ == "__main__":
    main()
