#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pack_for_gpu.sh BUILD CORPUS.h5... -o FOLDER
# Everything that certify_on_gpu.sh needs on a machine with a GPU, from a build with QKCTS_CUDA, as a folder and as an
# archive of at most 60 MiB.
set -eu

fail() {
  printf 'pack_for_gpu: %s\n' "$1" >&2
  exit "${2:-1}"
}

[ $# -ge 4 ] || fail "usage: pack_for_gpu.sh BUILD CORPUS.h5... -o FOLDER" 2
build=$(cd "$1" && pwd) || fail "no build folder $1" 2
shift
here=$(cd "$(dirname "$0")" && pwd)
for file in bin/qkcts bin/cuda_time bin/cuda_unit lib/libqkcts_cuda.so; do
  [ -f "$build/$file" ] || fail "$build/$file is missing: build with -DQKCTS_CUDA=ON" 2
done
corpora=
while [ $# -gt 0 ] && [ "$1" != -o ]; do
  [ -f "$1" ] || fail "no corpus $1" 2
  corpora="$corpora $1"
  shift
done
[ $# -eq 2 ] || fail "usage: pack_for_gpu.sh BUILD CORPUS.h5... -o FOLDER" 2
folder=$2
mkdir -p "$folder/bin" "$folder/lib/qkcts"

cp "$build/bin/qkcts" "$build/bin/cuda_time" "$build/bin/cuda_unit" "$folder/bin/"
cp "$build/lib/libqkcts_cuda.so" "$folder/lib/qkcts/"
strip "$folder/bin/"* "$folder/lib/qkcts/libqkcts_cuda.so" 2>/dev/null || true
# Not the C library and its loader: those are the machine's.
ldd "$build/bin/qkcts" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | while read -r library; do
  case $(basename "$library") in
    libc.so.* | libm.so.* | ld-linux* | libpthread.so.* | libdl.so.* | librt.so.*) ;;
    *) cp -L "$library" "$folder/lib/" ;;
  esac
done
cp "$here/certify_on_gpu.sh" "$here/torch_time.py" "$folder/"
for corpus in $corpora; do
  "$build/bin/qkcts" export "$corpus" -o "$folder/requests_$(basename "$corpus" .h5).h5"
done

archive=$folder.tar.gz
tar -C "$(dirname "$folder")" -czf "$archive" "$(basename "$folder")"
size=$(($(wc -c <"$archive") / 1048576 + 1))
[ "$size" -le 60 ] || fail "$archive has $size MiB, and 60 are what may be carried"
printf '%s and %s: %s MiB\n' "$folder" "$archive" "$size"
