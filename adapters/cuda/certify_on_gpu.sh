#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# certify_on_gpu.sh OUT [CARRIED]
# One command for a machine with an NVIDIA GPU and without a network: answers the carried requests with the CUDA kernel,
# asks the matrix unit how it adds, times the kernel, and leaves everything under OUT. `qkcts check` judges elsewhere;
# nothing is judged here.
#
# CARRIED (default: the folder of this script) is what pack_for_gpu.sh made: requests_*.h5, bin/qkcts, bin/cuda_time,
# bin/cuda_unit, lib/ with the libraries that they need, lib/qkcts/libqkcts_cuda.so. Where it has no kernel and nvcc is
# here, the folder `source` beside it is built.
set -eu

say() { printf '%s\n' "$*"; }
fail() {
  printf 'certify_on_gpu: %s\n' "$1" >&2
  exit "${2:-1}"
}

# Our programs with the carried libraries: they were linked with these. Nobody else's: a Python here has its own.
libraries=
ours() {
  (
    [ -z "$libraries" ] || LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    [ -z "${LD_LIBRARY_PATH:-}" ] || export LD_LIBRARY_PATH
    "$@"
  )
}
# What is not needed for a verdict must not keep anybody waiting.
seconds_of_figures=60
within() {
  if command -v timeout >/dev/null 2>&1; then timeout "$seconds_of_figures" "$@"; else "$@"; fi
}

[ $# -ge 1 ] && [ $# -le 2 ] || fail "usage: certify_on_gpu.sh OUT [CARRIED]" 2
here=$(cd "$(dirname "$0")" && pwd)
carried=$(cd "${2:-$here}" && pwd) || fail "no folder ${2:-$here}" 2
mkdir -p "$1"
out=$(cd "$1" && pwd)

if [ ! -x "$carried/bin/qkcts" ] || [ ! -f "$carried/lib/qkcts/libqkcts_cuda.so" ]; then
  [ -d "$carried/source" ] || fail "$carried has neither bin/qkcts and lib/qkcts/libqkcts_cuda.so nor a folder source to build them from" 2
  command -v nvcc >/dev/null 2>&1 || [ -x /usr/local/cuda/bin/nvcc ] || fail "nothing carried to run, and no nvcc to build it" 2
  say "building $carried/source"
  cmake -S "$carried/source" -B "$out/build" -DQKCTS_CUDA=ON -DQKCTS_TESTS=OFF >"$out/build.log" 2>&1 &&
    cmake --build "$out/build" -j >>"$out/build.log" 2>&1 || fail "the build failed, see $out/build.log"
  qkcts=$out/build/bin/qkcts
  kernel=$out/build/lib/libqkcts_cuda.so
  time_program=$out/build/bin/cuda_time
  unit_program=$out/build/bin/cuda_unit
else
  libraries=$carried/lib
  qkcts=$carried/bin/qkcts
  kernel=$carried/lib/qkcts/libqkcts_cuda.so
  time_program=$carried/bin/cuda_time
  unit_program=$carried/bin/cuda_unit
fi

set -- "$carried"/requests*.h5
[ -f "$1" ] || fail "no requests*.h5 in $carried (qkcts export makes them)" 2

if command -v nvidia-smi >/dev/null 2>&1; then
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv >"$out/device.csv" 2>&1 || true
  say "device: $(sed -n 2p "$out/device.csv")"
fi

# The probe first: without a device this is "not run" and exit code 5, and no file that could be taken for a result.
begin=$(date +%s)
for requests in "$@"; do
  name=$(basename "$requests" .h5)
  results=$out/results${name#requests}.h5
  code=0
  ours "$qkcts" answer "$kernel" "$requests" -o "$results" >"$out/answer${name#requests}.log" 2>&1 || code=$?
  tail -n 1 "$out/answer${name#requests}.log"
  [ "$code" -ne 5 ] || fail "not run: see $out/answer${name#requests}.log" 5
  [ "$code" -eq 0 ] || say "answer ended with $code: the cases concerned are marked in $results"
done
say "answered in $(($(date +%s) - begin)) s"

# How the unit adds, and times, are figures, not verdicts: that they are missing is said, and nothing else.
if [ -x "$unit_program" ]; then
  ours within "$unit_program" >"$out/unit.jsonl" 2>"$out/unit.log" || say "unit not asked: $(tail -n 1 "$out/unit.log")"
  cat "$out/unit.jsonl"
fi
if [ -x "$time_program" ]; then
  ours within "$time_program" >"$out/times_cuda.jsonl" 2>"$out/times_cuda.log" ||
    say "no times: $(tail -n 1 "$out/times_cuda.log")"
fi
if command -v python3 >/dev/null 2>&1; then
  within python3 "$here/torch_time.py" >"$out/times_torch.jsonl" 2>"$out/times_torch.log" ||
    say "nothing to compare with: $(tail -n 1 "$out/times_torch.log")"
fi
say "done in $(($(date +%s) - begin)) s; judge with: qkcts check CORPUS.h5 $out/results_CORPUS.h5"
