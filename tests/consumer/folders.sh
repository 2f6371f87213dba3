#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# folders.sh ROOT GENERATOR COMPILER: what pkg-config says where the folders of an installation are given from its prefix on, or from
# the root of the file system on. Nothing is built.
set -euo pipefail
root=$1 generator=$2 compiler=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# says LIBDIR INCLUDEDIR IN-LIBDIR IN-INCLUDEDIR: given the first two, they are the last two.
says() {
  cmake -S "$root" -B "$folder/build" -G "$generator" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_INSTALL_PREFIX="$folder/prefix" \
    -DCMAKE_INSTALL_LIBDIR="$1" -DCMAKE_INSTALL_INCLUDEDIR="$2" -DSTRATA_BUILD_APPS=OFF -DSTRATA_BUILD_BENCH=OFF \
    -DSTRATA_BUILD_TESTS=OFF -DSTRATA_BUILD_TOOLS=OFF >"$folder/log" || { cat "$folder/log"; exit 1; }
  mkdir -p "$3/pkgconfig"
  local package found
  for package in strata strata-pthread; do
    cp "$folder/build/$package.pc" "$3/pkgconfig"
    for found in "libdir $3" "includedir $4"; do
      local said
      said=$(PKG_CONFIG_PATH=$3/pkgconfig pkg-config --variable="${found% *}" "$package")
      [[ $(realpath -m "$said") == "${found#* }" ]] || { echo "$package with $1 and $2: $said, and not $found"; exit 1; }
    done
  done
}
says lib/here include/there "$folder/prefix/lib/here" "$folder/prefix/include/there"
says "$folder/lib" include "$folder/lib" "$folder/prefix/include"
says lib "$folder/include" "$folder/prefix/lib" "$folder/include"
says "$folder/lib" "$folder/include" "$folder/lib" "$folder/include"
