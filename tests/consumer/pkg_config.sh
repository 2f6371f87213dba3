#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pkg_config.sh COMPILER PREFIX LIBDIR SOURCE DOCUMENT WORDS: builds SOURCE as the first line of DOCUMENT says that has WORDS and
# $(pkg-config ...) in it, with what pkg-config says about the copy in PREFIX, and runs it.
set -euo pipefail
compiler=$1 prefix=$2 libdir=$3 source=$4 document=$5 words=$6
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
flags=()
while read -r command; do
  read -ra asked <<<"$command"
  said=$("${asked[@]}")
  read -ra more <<<"$said"
  flags+=("${more[@]}")
done < <(grep -F -- "$words" "$document" | grep -m1 -F '$(pkg-config' | grep -oE '\$\(pkg-config [^)]*\)' | sed -E 's/^..(.*).$/\1/')
((${#flags[@]})) || { echo "no \$(pkg-config ...) with '$words' in $document"; exit 1; }
echo "flags: ${flags[*]}"
"$compiler" -O2 -Werror "$source" -o "$folder/consumer" "${flags[@]}"
LD_LIBRARY_PATH=$prefix/$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$folder/consumer" --strata-workers=2
