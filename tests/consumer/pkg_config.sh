#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pkg_config.sh COMPILER PREFIX LIBDIR SOURCE README: builds SOURCE as README says, with what pkg-config says about the copy in PREFIX,
# and runs it.
set -euo pipefail
compiler=$1 prefix=$2 libdir=$3 source=$4 readme=$5
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
read -ra words <<<"$(sed -nE 's/.*\$\((pkg-config [^)]*)\).*/\1/p' "$readme")"
((${#words[@]})) || { echo "no \$(pkg-config ...) in $readme"; exit 1; }
read -ra flags <<<"$("${words[@]}")"
echo "flags: ${flags[*]}"
"$compiler" -O2 "$source" -o "$folder/consumer" "${flags[@]}"
LD_LIBRARY_PATH=$prefix/$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$folder/consumer" --strata-workers=2
