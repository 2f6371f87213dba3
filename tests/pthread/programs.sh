#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# programs.sh STRATA: programs of the system compress with their threads on our workers; what they wrote must decompress, by
# the same program without us, to what there was. sysbench counts in variables of each thread.
set -euo pipefail
strata=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
# Compressible, and of several blocks.
for i in {1..30}; do od -An -tx1 -v -N 20000 /dev/urandom; done >input
missing=()

compare() { # NAME: what `output` decompresses to
  cmp -s input back || { echo "FAILED: $1: other bytes came back"; exit 1; }
  echo "ok: $1"
}

count_with_sysbench() { # LINE TEST OPTION: what its six threads count together
  if ! timeout 120 "$strata" pthread sysbench "$2" --threads=6 "$3" run >said 2>&1 || ! grep -q "$1" said; then
    echo "FAILED: sysbench $2, $workers worker(s): no line '$1' in what it printed:"
    cat said
    exit 1
  fi
}

for workers in 1 2; do
  export STRATA_WORKERS=$workers
  if command -v pigz >/dev/null; then
    timeout 120 "$strata" pthread pigz -b 128 -p 6 -c input >output
    pigz -dc output >back
    compare "pigz, $workers worker(s)"
  else
    missing+=(pigz)
  fi
  if command -v pbzip2 >/dev/null; then
    timeout 120 "$strata" pthread pbzip2 -b2 -p5 -c input >output
    pbzip2 -dc output >back
    compare "pbzip2, $workers worker(s)"
    timeout 120 "$strata" pthread pbzip2 -d -p5 -c output >back
    compare "pbzip2 -d, $workers worker(s)"
  else
    missing+=(pbzip2)
  fi
  if command -v xz >/dev/null; then
    timeout 120 "$strata" pthread xz -1 --block-size=300KiB -T4 -c input >output
    xz -dc output >back
    compare "xz -T4, $workers worker(s)"
  else
    missing+=(xz)
  fi
  if command -v sysbench >/dev/null; then
    count_with_sysbench 'total number of events: *6$' mutex --time=100
    count_with_sysbench '^Total operations: 30720 ' memory --memory-total-size=30M
    echo "ok: sysbench, $workers worker(s)"
  else
    missing+=(sysbench)
  fi
done
if ((${#missing[@]})); then
  missing=($(printf '%s\n' "${missing[@]}" | sort -u))
  echo "SKIPPED for lack of: ${missing[*]} (cmake/debian-packages.txt names the packages)"
  exit 77
fi
