#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# readme.sh ROOT BUILD PROGRAM: runs the commands that README.md of ROOT has under "Use it", where there is no make, and builds the
# program in the folder PROGRAM as that says. Packages are not installed, and what takes long is not done again: the build is only
# planned, and what is installed is BUILD, which is finished.
set -euo pipefail
root=$1 finished=$2 program=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HOME=$folder/home
mkdir -p "$HOME" "$folder/bin" "$folder/copy"
for name in make gmake smake; do printf '#!/bin/sh\nexit 1\n' >"$folder/bin/$name"; chmod 755 "$folder/bin/$name"; done
export PATH=$folder/bin:$PATH
unset CMAKE_GENERATOR CMAKE_PREFIX_PATH
path_before=$PATH

section=$(sed -n '/^## Use it$/,/^## C/p' "$root/README.md")
commands=$(awk '/^```/{inside = !inside; plain = $0 == "```"; next} inside && plain' <<<"$section")
configure=$(grep -oE 'cmake [^`]*-DCMAKE_PREFIX_PATH=[^`]*' <<<"$section")
printf '%s\n' "$commands" "$configure"

cmake/install-packages() { [[ -x $root/cmake/install-packages && $# -eq 1 && $1 == build ]]; }
cmake() {
  case $1 in
    --build) command cmake "$@" -- -n >/dev/null ;;
    --install) command cmake --install "$finished" "${@:3}" >/dev/null ;;
    *) command cmake -S "$root" "$@" >/dev/null ;;
  esac
}
cd "$folder/copy"
eval "$commands"
unset -f cmake cmake/install-packages
[[ $(command -v strata) == "$HOME/strata/bin/strata" ]]
pkg-config --exists strata

# That folder in PATH would tell CMake, too, where to look.
PATH=$path_before
cp -r "$program/." "$folder/program"
cd "$folder/program"
eval "$configure"
cmake --build build
build/consumer --strata-workers=2
