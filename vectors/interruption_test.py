# SPDX-License-Identifier: Apache-2.0
"""`qkcts generate` killed, interrupted and out of space: the finished file has the bytes of one made in one go, the old
file stands until then, and what is left behind is named. Usage: interruption_test.py QKCTS FOLDER"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

QKCTS, FOLDER = sys.argv[1], os.path.join(sys.argv[2], "interruption_test")
CASES = ["generate", "--contract", "qwen3_rmsnorm,plain_sdpa,henry2020_l2", "--family", "gaussian,tied,one_hot",
         "--format", "binary32,bfloat16", "--shape", "1,4,2,24,40,32,24", "--jobs", "2", "-o"]


def start(path, *options):
    return subprocess.Popen([QKCTS, *CASES, path, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(path, *options):
    process = start(path, *options)
    output, error = process.communicate(timeout=300)
    return process.returncode, output + error


def content(path):
    with open(path, "rb") as file:
        return file.read()


def expect(condition, text):
    if not condition:
        sys.exit("interruption_test: " + text)


def in_one_go():
    path = os.path.join(FOLDER, "whole.h5")
    begun = time.monotonic()
    code, text = finish(path)
    expect(code == 0, "exit code %d\n%s" % (code, text))
    return content(path), time.monotonic() - begun


# `generate` takes it for a corpus: over another kind of file it would not write.
OLD = b"\x89HDF\r\n\x1a\nqkcts-vectors, old"


def killed(whole, seconds):
    """kill -9 at many moments, each time a bit later; then the rest."""
    path = os.path.join(FOLDER, "killed.h5")
    with open(path, "wb") as file:
        file.write(OLD)
    kills = 0
    for attempt in range(1, 7):
        process = start(path, "--resume")
        time.sleep(seconds * attempt / 7)
        if process.poll() is None:
            process.kill()
            kills += 1
        process.communicate()
        if process.returncode == 0 or content(path) == whole:  # killed when all was done
            break
        expect(content(path) == OLD, "a killed run touched the old file")
    code, text = finish(path, "--resume")
    expect(code == 0 and content(path) == whole, "after %d kills other bytes, exit code %d\n%s" % (kills, code, text))
    expect(kills > 0, "nothing was killed")
    expect(os.listdir(FOLDER) == ["whole.h5", "killed.h5"] or sorted(os.listdir(FOLDER)) == ["killed.h5", "whole.h5"],
           "left behind: %s" % os.listdir(FOLDER))
    os.remove(path)
    return kills


def interrupted(whole, seconds):
    """Ctrl-C: with --resume the finished cases stay, without it nothing does."""
    path = os.path.join(FOLDER, "stopped.h5")
    for options, stays in ((["--resume"], True), ([], False)):
        process = start(path, *options)
        time.sleep(seconds / 2)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=300)
        if process.returncode == 0:  # it was quicker than that
            os.remove(path)
            continue
        expect(process.returncode == 128 + signal.SIGINT, "Ctrl-C: exit code %d\n%s" % (process.returncode, error))
        expect("interrupted after" in error, "Ctrl-C says nothing: " + error)
        expect(not os.path.exists(path), "Ctrl-C left a file")
        found = sorted(name for name in os.listdir(FOLDER) if name != "whole.h5")
        expect(found == (["stopped.h5.part"] if stays else []), "Ctrl-C left %s" % found)
        if stays:
            code, text = finish(path, "--resume")
            expect(code == 0 and content(path) == whole, "after Ctrl-C other bytes, exit code %d\n%s" % (code, text))
            os.remove(path)


def in_small_space(command):
    """The text that a shell command says where FOLDER/small is a file system of one megabyte; None if that is refused."""
    small = os.path.join(FOLDER, "small")
    os.makedirs(small, exist_ok=True)
    script = 'mount -t tmpfs -o size=1m none "$0" || exit 77\n' + command
    if shutil.which("unshare") is None:
        return None
    done = subprocess.run(["unshare", "-Urm", "sh", "-c", script, small, QKCTS, *CASES], capture_output=True, text=True,
                          timeout=300)
    os.rmdir(small)
    if done.returncode == 77 or done.stderr.startswith("unshare"):
        return None
    return done.stdout + done.stderr


def full_disk(size):
    """The file does not fit: one error that says so, the old file stands, and nothing else is left, or it is named."""
    expect(size > 1500000, "the corpus of this test became too small (%d bytes)" % size)
    command = ('printf "\\211HDF\\r\\n\\032\\nqkcts-vectors, old" > "$0/a.h5"; '
               '"$@" "$0/a.h5" %s 2>"$0/../error"; echo "code $?"; cat "$0/../error"; '
               'echo "old: $(tail -c 3 "$0/a.h5")"; echo "files: $(ls "$0" | tr "\\n" " ")"')
    for options in ("", "--resume"):
        text = in_small_space(command % options)
        if text is None:
            return False
        os.remove(os.path.join(FOLDER, "error"))
        errors = re.findall(r"^qkcts: .*$", text, re.M)
        expect("code 6" in text and len(errors) == 1 and "No space left on device" in errors[0], "full disk: " + text)
        expect("old: old" in text, "full disk: the old file is gone: " + text)
        left = re.search(r"files: (.*) $", text, re.M).group(1)
        expect(left == ("a.h5 a.h5.part" if options else "a.h5"), "full disk: left behind: " + left)
        expect(not options or "stays in" in errors[0], "full disk: what is left is not named: " + errors[0])
    return True


shutil.rmtree(FOLDER, ignore_errors=True)
os.makedirs(FOLDER)
WHOLE, SECONDS = in_one_go()
KILLS = killed(WHOLE, SECONDS)
interrupted(WHOLE, SECONDS)
MOUNTED = full_disk(len(WHOLE))
print("%d kills, %.1f s each in one go; full disk %s" % (KILLS, SECONDS, "tried" if MOUNTED else "skipped: no mount allowed"))
shutil.rmtree(FOLDER)
