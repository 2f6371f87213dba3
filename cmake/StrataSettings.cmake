# SPDX-License-Identifier: Apache-2.0
# Options, compiler flags and output folders that hold for every target of the project.
# Nothing here leaks into a program that uses the installed library.

option(STRATA_BUILD_APPS "Build the applications" ${PROJECT_IS_TOP_LEVEL})
option(STRATA_BUILD_TOOLS "Build the command strata: launcher and more" ${PROJECT_IS_TOP_LEVEL})
option(STRATA_BUILD_BENCH "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(STRATA_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(STRATA_PRECOMPILE "Precompile large headers of applications, tools and tests" ON)
option(STRATA_UNITY "Compile many sources as one, for builds that are only tested" OFF)
option(STRATA_WERROR "Treat warnings as errors" OFF)
option(STRATA_DEBUG_CHECKS "Compile STRATA_DCHECK in (always on in Debug and sanitizer builds)" OFF)
set(STRATA_UCX AUTO CACHE STRING "The transport over UCX: ON, OFF, or AUTO: where its headers are found")
set(STRATA_PMIX AUTO CACHE STRING "Jobs of srun and mpirun through PMIx: ON, OFF, or AUTO: where its headers are found")
set(STRATA_SANITIZE "" CACHE STRING "Sanitizers, comma separated: address, undefined, thread")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  if(PROJECT_IS_TOP_LEVEL)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
  else()
    # Our own targets alone: the rest of such a build is as its author has it.
    string(APPEND CMAKE_CXX_FLAGS " ${CMAKE_CXX_FLAGS_RELEASE}")
  endif()
endif()
set(strata_quick_options "")
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT STRATA_SANITIZE)
  set(strata_quick_options -O1)
endif()
set(STRATA_QUICK_OPTIONS "${strata_quick_options}" CACHE STRING
  "Compiler options of sources that run once per process, or wait for others: most tests, command lines; a list")
set(STRATA_QUICK_COMPILER "" CACHE STRING "Another C++ compiler for them, of the same ABI and standard library")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

# Headers of a library that is optional, and loaded by those processes that use it: they say what to call. The option STRATA_<NAME>
# is ON, OFF or AUTO; sets STRATA_HAS_<NAME> and STRATA_<NAME>_INCLUDE_DIR. MODULE and VERSION are pkg-config's.
function(strata_find_headers title)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MODULE;VERSION;HEADER;PACKAGE" "")
  string(TOUPPER ${title} name)
  set(STRATA_HAS_${name} OFF PARENT_SCOPE)
  if(NOT STRATA_${name} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "STRATA_${name}: '${STRATA_${name}}' is not one of AUTO, ON, OFF")
  elseif(STRATA_${name} STREQUAL "OFF")
    return()
  endif()
  find_package(PkgConfig QUIET)
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(${name} QUIET ${arg_MODULE}>=${arg_VERSION})
  endif()
  find_path(STRATA_${name}_INCLUDE_DIR ${arg_HEADER} HINTS ${${name}_INCLUDE_DIRS} ${${name}_INCLUDEDIR})
  mark_as_advanced(STRATA_${name}_INCLUDE_DIR)
  if(${name}_FOUND AND STRATA_${name}_INCLUDE_DIR)
    set(STRATA_HAS_${name} ON PARENT_SCOPE)
  elseif(STRATA_${name} STREQUAL "ON")
    message(FATAL_ERROR "STRATA_${name}=ON: no headers of ${title} ${arg_VERSION} or later (Debian: ${arg_PACKAGE})")
  endif()
endfunction()
strata_find_headers(UCX MODULE ucx VERSION 1.13 HEADER ucp/api/ucp.h PACKAGE libucx-dev)
strata_find_headers(PMIx MODULE pmix VERSION 3.1 HEADER pmix.h PACKAGE libpmix-dev)

include(GNUInstallDirs)
find_package(Threads REQUIRED)

# No -march here, ever: one binary runs on many machines, and kernels choose their instructions at run time.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options(-Wno-restrict)  # sees overlaps in operator+(const char*, string&&): gcc.gnu.org/PR105651
endif()
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)  # checks print paths as the repository knows them
if(STRATA_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=600000>)  # KiB: many sources as one are read without a collection in between
endif()
if(STRATA_WERROR)
  add_compile_options(-Werror)
endif()
add_link_options(-Wl,--build-id)  # nodes of a job compare it; most compilers ask for it by themselves

set(STRATA_SANITIZED OFF)
if(STRATA_SANITIZE)
  string(REPLACE "," ";" sanitizers "${STRATA_SANITIZE}")
  foreach(sanitizer IN LISTS sanitizers)
    if(NOT sanitizer MATCHES "^(address|undefined|thread)$")
      message(FATAL_ERROR "STRATA_SANITIZE: '${sanitizer}' is not one of address, undefined, thread")
    endif()
  endforeach()
  if("thread" IN_LIST sanitizers AND "address" IN_LIST sanitizers)
    message(FATAL_ERROR "STRATA_SANITIZE: address and thread exclude each other")
  endif()
  list(JOIN sanitizers "," sanitize_flag)
  set(STRATA_SANITIZED ON)
  add_compile_options(-fsanitize=${sanitize_flag} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${sanitize_flag})
  if("undefined" IN_LIST sanitizers)
    add_compile_options(-fno-sanitize-recover=undefined)  # a report is a failure, not a line in a log
    if("address" IN_LIST sanitizers)
      # What the compiler can tell of an object's end, AddressSanitizer sees at run time.
      add_compile_options(-fno-sanitize=object-size)
    endif()
  endif()
endif()

if(CMAKE_BUILD_TYPE STREQUAL "Debug" OR STRATA_SANITIZED)
  set(STRATA_DEBUG_CHECKS ON)
endif()
