# SPDX-License-Identifier: Apache-2.0
# strata_precompile(<name> LIBS <targets> HEADERS <headers>): large headers, compiled once for all targets that say
#   target_precompile_headers(<target> REUSE_FROM <name>)
# Half of the time of a build went into reading them again. Without STRATA_PRECOMPILE nothing is precompiled, and every file has to
# include what it uses. The library's own files always have to.
function(strata_precompile name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBS;HEADERS")
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp CONTENT "// Precompiled headers need a source.\n")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE ${arg_LIBS})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
endfunction()

# strata_use_precompiled(<target> <name>)
function(strata_use_precompiled target name)
  if(STRATA_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()

# strata_unite(<target> [TEST | ALWAYS] [BATCH <n>] [EXCEPT <files>]): with STRATA_UNITY=ON, or TESTS and this is a test's, or ALWAYS,
# n sources (10) at a time are compiled as one. ./check does so where it looks for what happens at run time, not for what a single file
# lacks. EXCEPT: files that give a name of their own to something else than their neighbours do.
function(strata_unite target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ALWAYS;TEST" "BATCH" "EXCEPT")
  if(NOT arg_BATCH)
    set(arg_BATCH 10)
  endif()
  if(arg_ALWAYS OR STRATA_UNITY STREQUAL "ON" OR (arg_TEST AND STRATA_UNITY STREQUAL "TESTS"))
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${arg_BATCH})
    foreach(file IN LISTS arg_EXCEPT)
      get_filename_component(file ${file} ABSOLUTE)
      set_source_files_properties(${file} TARGET_DIRECTORY ${target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endforeach()
  endif()
endfunction()

# strata_compile_quickly(<target>): optimised little in a release, since its code runs once per process, or waits for others.
function(strata_compile_quickly target)
  if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT STRATA_SANITIZED)
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()
