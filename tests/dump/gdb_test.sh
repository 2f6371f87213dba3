#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gdb_test.sh PROGRAM: gdb loads the script out of the program, lists its threads, looks at one, and lets the program go on.
set -euo pipefail
program=$1
command -v gdb >/dev/null || { echo "skipped: gdb is not installed"; exit 77; }

out=$(gdb -batch -nx -iex "add-auto-load-safe-path $(dirname "$program")" -ex "set debuginfod enabled off" \
  -ex "break stop_here" -ex run -ex "strata threads" -ex "strata bt all" \
  -ex "python one = [t for t in all_threads() if t.name == 'alpha'][0].number" \
  -ex "python gdb.execute('strata thread %d' % one)" -ex "echo LOOK\n" -ex bt -ex "strata thread" -ex "echo BACK\n" -ex bt \
  -ex "strata thread 999" -ex continue -ex "strata threads" -ex "strata bt all" "$program" 2>&1 </dev/null) || true
if grep -q "Operation not permitted\|ptrace: " <<<"$out"; then echo "skipped: this system does not let gdb trace"; exit 77; fi

fail() { echo "missing: $1"; echo "$out"; exit 1; }
expect() { grep -qE -- "$1" <<<"$out" || fail "$1"; }
expect '^thread [0-9]+ "alpha": waits for semaphore at 0x'
expect '^thread [0-9]+ "a name that is too long for the string itself": waits for semaphore at 0x'
expect '^thread [0-9]+ "thread": waits for semaphore at 0x'
expect '^thread [0-9]+ "pthread": waits for semaphore at 0x'
expect '^thread [0-9]+ "gamma": waits for semaphore at 0x'
expect '^thread [0-9]+ "delta": ready'
expect '^thread [0-9]+ "kind_of_work\(\)::.*": running on OS thread [0-9]+'
[[ $(grep -c 'in strata_context_begin' <<<"$out") -ge 6 ]] || fail "six suspended stacks to their end"
look=$(sed -n '/^LOOK/,/^BACK/p' <<<"$out")
grep -q 'wait_in_the_depths' <<<"$look" || fail "wait_in_the_depths, in the stack of alpha"
back=$(sed -n '/^BACK/,$p' <<<"$out")
grep -q '^#0 .*stop_here' <<<"$back" || fail "back at stop_here"
grep -q 'wait_in_the_depths' <<<"$back" && fail "only the OS thread's own frames"
expect 'there is no thread 999'
expect 'exited normally'
[[ $(grep -c '^strata: there is no process to look at' <<<"$out") == 2 ]] || fail "two commands without a process"
