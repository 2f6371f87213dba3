# SPDX-License-Identifier: Apache-2.0
# What makes builds shorter.
#
# strata_precompile(<name> LIBS <targets> HEADERS <headers>): large headers, compiled once for all targets that say
#   strata_use_precompiled(<target> <name>)
# Half of the time of a build went into reading them again. Without STRATA_PRECOMPILE nothing is precompiled, and every file has to
# include what it uses. The library's own files always have to.
function(strata_precompile name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBS;HEADERS")
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp CONTENT "// Precompiled headers need a source.\n")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE ${arg_LIBS})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
  # What was precompiled with optimisation is refused by a compiler that does not optimise.
  if(STRATA_QUICK_OPTIONS MATCHES "-O0" AND NOT name MATCHES "_quick$")
    strata_precompile(${name}_quick ${ARGN})
    strata_compile_quickly(${name}_quick)
  endif()
endfunction()

# strata_use_precompiled(<target> <name>)
function(strata_use_precompiled target name)
  if(STRATA_PRECOMPILE)
    get_target_property(quick ${target} STRATA_QUICK)
    if(quick AND TARGET ${name}_quick)
      set(name ${name}_quick)
    endif()
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()

# strata_compile_quickly(<target>): its code runs once per process, or waits for others; with STRATA_QUICK_OPTIONS, and by
# STRATA_QUICK_COMPILER, if there is one: without optimisation clang++ takes .6 of g++'s time. Say so before strata_use_precompiled().
function(strata_compile_quickly target)
  target_compile_options(${target} PRIVATE ${STRATA_QUICK_OPTIONS})
  set_target_properties(${target} PROPERTIES STRATA_QUICK ON)
  if(STRATA_QUICK_COMPILER)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/compile-with;${STRATA_QUICK_COMPILER}")
  endif()
endfunction()

# strata_compile_quickly_sanitized(<target>): a sanitizer's checks are the same in code that is not optimised, and of what this target
# computes little is asked there.
function(strata_compile_quickly_sanitized target)
  if(STRATA_SANITIZED)
    strata_compile_quickly(${target})
  endif()
endfunction()

# strata_mark_sources(<target> <property> [<file>...]): turns the property on for these sources of the target, wherever that was made.
function(strata_mark_sources target property)
  foreach(file IN LISTS ARGN)
    get_filename_component(file ${file} ABSOLUTE)
    set_source_files_properties(${file} TARGET_DIRECTORY ${target} PROPERTIES ${property} ON)
  endforeach()
endfunction()

# strata_precompile_std(<target> [EXCEPT <files>]): with STRATA_UNITY, the standard headers that most files of the target include. EXCEPT:
# files that are compiled otherwise.
function(strata_precompile_std target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "EXCEPT")
  if(STRATA_UNITY AND STRATA_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <atomic> <cstdint> <cstdio> <cstdlib> <cstring>
      <deque> <exception> <functional> <map> <memory> <mutex> <optional> <set> <span> <string> <string_view> <system_error>
      <thread> <unordered_map> <utility> <vector>)
    strata_mark_sources(${target} SKIP_PRECOMPILE_HEADERS ${arg_EXCEPT})
  endif()
endfunction()

# strata_unite(<target> [ALWAYS] [BATCH <n>] [EXCEPT <files>]): with STRATA_UNITY, or ALWAYS, n sources (10) at a time are compiled as one.
# ./check does so: it looks for what happens at run time, not for what a single file lacks. EXCEPT: files that give a name of their own
# to something else than their neighbours do.
function(strata_unite target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ALWAYS" "BATCH" "EXCEPT")
  if(NOT arg_BATCH)
    set(arg_BATCH 10)
  endif()
  if(arg_ALWAYS OR STRATA_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${arg_BATCH})
    strata_mark_sources(${target} SKIP_UNITY_BUILD_INCLUSION ${arg_EXCEPT})
  endif()
endfunction()
