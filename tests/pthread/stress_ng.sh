#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# stress_ng.sh STRATA: stressors of stress-ng that are made of pthreads, with its own verification, as they are and with
# their threads on our workers: none may complain, and all operations that were asked for are done. Each stressor runs in
# a child that stress-ng forks. (`--sem` works too, but takes a minute to end. Of several instances of `--mutex` one can
# be left without work, and so can a single one with few operations, kernel threads or ours: its first thread does them
# all before it is counted. stress-ng calls both an error.)
set -euo pipefail
strata=$1
command -v stress-ng >/dev/null || { echo "SKIPPED for lack of stress-ng (cmake/debian-packages.txt)"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

operations() { # STRESSOR: how many it says it has done
  awk -v name="$1" '$2 == "metrc:" && $4 == name && $5 ~ /^[0-9]+$/ { print $5; exit }' said
}
run() { # STRESSOR INSTANCES OPERATIONS COMMAND...
  local name=$1 instances=$2 wanted=$3 done races=0
  shift 3
  until timeout 200 "$@" stress-ng -v --verify --metrics-brief --temp-path "$folder" \
    "--$name" "$instances" "--$name-ops" "$wanted" >said 2>&1; do
    # stress-ng's own race, with kernel threads too: all is done before the thread that makes others has made its own.
    [[ $name == mutex ]] && ((races++ < 5)) && grep -q 'mutex: could not create any pthreads' said && continue
    echo "FAILED: $name: $*"
    cat said
    exit 1
  done
  done=$(operations "$name")
  # Threads of one instance may count a few more before they see that it is enough; one for each at most.
  if [[ -z $done ]] || ((done < wanted || done > wanted + 64 * instances)); then
    echo "FAILED: $name: ${done:-no} operations of $wanted: $*"
    cat said
    exit 1
  fi
  echo "ok: $name, $done operations${*:+, workers: $STRATA_WORKERS}"
}

export STRATA_WORKERS
for STRATA_WORKERS in 1 2; do
  for what in 'pthread 1 1500' 'pthread 2 1000' 'mutex 1 20000' 'nanosleep 1 200'; do
    read -r -a asked <<<"$what"
    ((STRATA_WORKERS > 1)) || run "${asked[@]}"
    run "${asked[@]}" "$strata" pthread
  done
done
