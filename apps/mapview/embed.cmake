# SPDX-License-Identifier: Apache-2.0
# cmake -D OUT=<file.cpp> -P embed.cmake -- <file>...: writes mapview::page_files() with the content of these files.
# Strings as they are in the source: easier to read in the result than numbers, and as quick to compile.
set(known_html "text/html; charset=utf-8")
set(known_css "text/css; charset=utf-8")
set(known_js "text/javascript; charset=utf-8")
set(known_svg "image/svg+xml")
set(entries "")
set(first FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(CMAKE_ARGV${i} STREQUAL "--")
    set(first TRUE)
    continue()
  endif()
  if(NOT first)
    continue()
  endif()
  set(file "${CMAKE_ARGV${i}}")
  cmake_path(GET file FILENAME name)
  cmake_path(GET file EXTENSION LAST_ONLY extension)
  string(SUBSTRING "${extension}" 1 -1 extension)
  if(NOT DEFINED known_${extension})
    message(FATAL_ERROR "embed.cmake: no media type for ${name}")
  endif()
  if(name STREQUAL "index.html")
    set(name "")
  endif()
  file(READ "${file}" content)
  string(APPEND entries "    {\"/${name}\", \"${known_${extension}}\",\n     R\"~embedded~(${content})~embedded~\"},\n")
endforeach()
file(WRITE "${OUT}" "// Written by embed.cmake.
#include \"apps/mapview/page_files.hpp\"
namespace mapview {
namespace {
constexpr page_file files[] = {
${entries}};
}
std::span<const page_file> page_files() { return files; }
}  // namespace mapview
")
