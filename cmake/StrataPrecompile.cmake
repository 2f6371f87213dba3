# SPDX-License-Identifier: Apache-2.0
# strata_precompile(<name> LIBS <targets> HEADERS <headers>): large headers, compiled once for all targets that say
#   target_precompile_headers(<target> REUSE_FROM <name>)
# Half of the time of a build went into reading them again. Without STRATA_PRECOMPILE nothing is precompiled, and every file has to
# include what it uses; ./check builds once like that.
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
