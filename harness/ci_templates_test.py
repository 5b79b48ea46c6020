# SPDX-License-Identifier: Apache-2.0
"""ci_templates_test.py QKCTS DOCS: the script lines of docs/ci/*.yml, run as they stand."""
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path


def blocks(text, opening):
    """The literal blocks ("|") of lines that match `opening`, in order: name of the step, script."""
    found, name = [], ""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if titled := re.match(r"\s*- name: (.*)", line):
            name = titled.group(1)
        if not re.match(opening, line):
            continue
        indent = len(line) - len(line.lstrip())
        script = []
        for inner in lines[at + 1:]:
            if inner.strip() and len(inner) - len(inner.lstrip()) <= indent:
                break
            script.append(inner.strip())
        found.append((name, "\n".join(script)))
    return found


def run(script, folder, program, **variables):
    # Without the runner's own variables: this test may itself run under one.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("GITHUB_", "QKCTS_"))}
    environment |= {"PATH": f"{Path(program).parent}:{os.environ['PATH']}", "BUILD_KERNEL": "true", "SUITE": "smoke",
                    "CORPUS_URL": "", "QKCTS_CORPORA": "corpora", **variables}
    done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=folder, env=environment, text=True,
                          capture_output=True, timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


def expect(condition, what):
    if not condition:
        sys.exit(f"FAIL: {what}")


def check(template, scripts, program, kernel, corpus, judge, gate):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)

        def step(script, adapter="scalar", **variables):
            return run(script, folder, program, ADAPTER=adapter, **variables)

        expect(step(kernel)[0] == 0, f"{template}: kernel")
        code, text = step(corpus)
        expect(code == 0 and (folder / "corpora/smoke.h5").exists(), f"{template}: corpus generated: {text}")
        released = (folder / "corpora/smoke.h5").read_bytes()
        code, text = step(judge)
        expect(code == 0, f"{template}: a right kernel: {text}")
        code, text = step(gate)
        expect(code == 0 and "no baseline.json yet" in text, f"{template}: no baseline: {text}")
        step("qkcts baseline update baseline.json report/run.json")
        code, text = step(gate)
        expect(code == 0 and "GATE PASSED" in text, f"{template}: gate: {text}")
        for script in scripts:
            expect(step(script)[0] == 0, f"{template}: the whole of it again: {script}")

        baseline = json.loads((folder / "baseline.json").read_text())
        for entry in baseline["runs"][0]["entries"]:
            entry["max_ulp"] = (entry["max_ulp"] or 0) / 8
        (folder / "baseline.json").write_text(json.dumps(baseline))
        code, text = step(gate)
        expect(code == 1 and "GATE FAILED" in text, f"{template}: an error that grew: {text}")

        wrong = "mutants?mutant=eps_outside_sqrt"
        code, text = step(judge, wrong)
        expect(code == 1, f"{template}: a wrong kernel: {text}")
        failing = {case["case"] for case in json.loads((folder / "report/run.json").read_text())["cases"]
                   if case["verdict"] == "fail"}
        expect(failing, f"{template}: the wrong kernel fails nowhere")
        known = [{"case": case, "reason": "known", "link": "issue 1", "expires": "2999-12-31"} for case in failing]
        (folder / "known_failures.json").write_text(
            json.dumps({"schema": "qkcts-known-failures/1", "failures": known}))
        code, text = step(judge, wrong)
        expect(code == 0, f"{template}: all of it is known: {text}")
        expect(step(judge)[0] == 1, f"{template}: what is listed and passes fails")
        (folder / "known_failures.json").unlink()

        # Another corpus under the name of the suite is refused, wherever it came from.
        run("qkcts generate smoke --seed 7 -o other.h5", folder, program)
        (folder / "corpora/smoke.h5").unlink()
        code, text = step(corpus, CORPUS_URL=f"file://{folder}/other.h5")
        if "curl" not in text:  # it is not installed everywhere
            code, text = step(judge)
            expect(code == 3 and "is not the released suite" in text, f"{template}: another corpus: {text}")
        (folder / "corpora/smoke.h5").write_bytes(released)


def main():
    program, docs = sys.argv[1], Path(sys.argv[2])
    github = blocks((docs / "github.yml").read_text(), r"\s*run: \|$")
    names = [name for name, _ in github]
    expect(names == ["kernel", "corpus", "run", "gate", "annotate"], f"steps of github.yml: {names}")
    scripts = [script for _, script in github]
    check("github.yml", scripts, program, *scripts[:4])
    gitlab = [script for _, script in blocks((docs / "gitlab.yml").read_text(), r"\s*- \|$")]
    expect(len(gitlab) == 4, f"scripts of gitlab.yml: {len(gitlab)}")
    check("gitlab.yml", gitlab, program, *gitlab)
    expect(gitlab == scripts[:3] + [scripts[3].replace(" --github", "")], "the templates do the same")
    print("both templates run as they stand")


main()
