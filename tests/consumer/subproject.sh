#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# subproject.sh ROOT GENERATOR COMPILER: a project that has ROOT below it, and says nothing of how it is to be built, is built as
# without ROOT, whose own targets are optimised; the command finds its library. Nothing is built.
set -euo pipefail
root=$1 generator=$2 compiler=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
  echo "subproject.sh: $*" >&2
  exit 1
}

mkdir "$folder/source"
cat >"$folder/source/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(above LANGUAGES CXX)
set(STRATA_BUILD_TOOLS ON)
add_subdirectory("$root" strata)
add_executable(program program.cpp)
target_link_libraries(program PRIVATE strata::strata)
foreach(name strata_command strata_pthread)
  file(GENERATE OUTPUT \${CMAKE_BINARY_DIR}/\${name}.path CONTENT "\$<TARGET_FILE:\${name}>")
endforeach()
END
echo 'int main() {}' >"$folder/source/program.cpp"
env -u CMAKE_BUILD_TYPE -u CXXFLAGS cmake -S "$folder/source" -B "$folder/build" -G "$generator" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >"$folder/log" || { cat "$folder/log"; exit 1; }

# compiled NAME: the command for the source of this name.
compiled() { grep '"command":' "$folder/build/compile_commands.json" | grep -m 1 "/$1\""; }
[[ $(compiled program.cpp) != *-O* && $(compiled program.cpp) != *NDEBUG* ]] || fail "the program's own: $(compiled program.cpp)"
[[ $(compiled base/error.cpp) == *' -O3 '* ]] || fail "the library's: $(compiled base/error.cpp)"
[[ -z $(sed -n 's/^CMAKE_BUILD_TYPE:STRING=//p' "$folder/build/CMakeCache.txt") ]] || fail "a build type is in the cache"

# As installed: bin/strata, and lib/libstrata_pthread.so beside bin.
command=$(<"$folder/build/strata_command.path") library=$(<"$folder/build/strata_pthread.path")
[[ $(dirname "$(dirname "$library")") == $(dirname "$(dirname "$command")") ]] || fail "$command does not find $library"
