#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# posix_suite_test.sh BUILD_DIR: posix_suite.py on a suite of a few programs that end in every way.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
run() { # EXPECTED_STATUS ARGUMENTS...: leaves what was printed in `text`
  local expected=$1 status=0
  shift
  text=$("$here/posix_suite.py" --build-dir "$build" "$@" 2>&1) || status=$?
  ((status == expected)) || { echo "FAILED: status $status and not $expected: $*"; echo "$text"; exit 1; }
}
has() { # LINE: with any number of blanks where it has one
  grep -qxE " *${1// / +} *" <<<"$text" || { echo "FAILED: no line '$1' in:"; echo "$text"; exit 1; }
}
build=$1

run 1 --jobs 2 "$here/suite"
#                  passed failed unresolved unsupported untested crashed hung not-built
for way in native preload; do has "pthread_join $way 1 1 0 0 0 0 0 1"; done
has "pthread_join shim 2 0 0 0 0 0 0 1"
for way in native shim preload; do
  has "sched_yield $way 0 0 0 1 0 0 0 0"
  has "sem_post $way 0 0 1 0 0 1 0 0"
done
has "all shim 2 0 1 1 0 1 0 1"
has "pthread_join 3-1: passed with shim, failed with the C library"

run 0 --way preload --only 'sem_*' "$here/suite"
has "all preload 0 0 1 0 0 1 0 0"
if grep -qE 'pthread_join|shim' <<<"$text"; then
  echo "FAILED: more than was asked for:"
  echo "$text"
  exit 1
fi

run 2 "$here"
has "posix_suite.py: $here/conformance/interfaces is no folder: name the checkout of the suite itself"
run 2 --only no_such "$here/suite"
echo "$text"
