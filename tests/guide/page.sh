#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# page.sh PAGE EXAMPLES COMMANDS PROGRAMS [parts]: each block of C++ in PAGE (with `parts`: that has a main()) is one of the files
# in EXAMPLES, all of them are there, and each `$ command` prints the lines below it. COMMANDS is where `strata` lies, PROGRAMS
# where the programs do. How programs are built is shown too, but not done here (consumer.pkg_config does it).
set -euo pipefail
page=$1 examples=$2 programs=$4 parts=${5-}
PATH=$3:$PATH
failed=0
wrong() { printf 'wrong: %s\n' "$1"; failed=1; }

block=() kind='' quoted='' runs=0

check_code() {
  local text file
  text=$(printf '%s\n' "${block[@]}")
  [[ -n $parts && $text != *'int main('* ]] && return
  for file in "$examples"/*.cpp; do
    [[ $text == "$(<"$file")" ]] && { quoted+=" ${file##*/}"; return; }
  done
  wrong "a program that is none of $examples/*.cpp, beginning with '${block[0]}'"
}

# Runs one command, and compares what it prints with the lines given.
check_command() {
  local command=$1 wanted=$2 got
  [[ -z $command || $command == g++* ]] && return
  runs=$((runs + 1))
  got=$(cd "$programs" && eval "$command" 2>"$errors" </dev/null) || { wrong "$command: status $?"; cat "$errors"; }
  [[ $got == "$wanted" ]] || { wrong "$command"; diff <(printf '%s\n' "$wanted") <(printf '%s\n' "$got") || true; }
}

check_commands() {
  local line command='' wanted=''
  for line in "${block[@]}"; do
    if [[ $line == '$ '* ]]; then
      check_command "$command" "${wanted%$'\n'}"
      command=${line#'$ '} wanted=''
    else
      wanted+=$line$'\n'
    fi
  done
  check_command "$command" "${wanted%$'\n'}"
}

errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
mapfile -t lines <"$page"
for line in "${lines[@]}"; do
  if [[ -z $kind ]]; then
    [[ $line == '```'?* ]] && kind=${line#'```'} block=()
  elif [[ $line == '```' ]]; then
    [[ $kind == cpp ]] && check_code
    [[ $kind == console ]] && check_commands
    kind=''
  else
    block+=("$line")
  fi
done

for file in "$examples"/*.cpp; do
  [[ " $quoted " == *" ${file##*/} "* ]] || wrong "$file is not quoted"
done
((runs > 0)) || wrong "no command was run"
echo "$runs commands,$quoted"
exit "$failed"
