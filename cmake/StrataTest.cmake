# SPDX-License-Identifier: Apache-2.0
# strata_add_test(<name> SOURCES <files> [ONE_THREAD <files>] LABELS <label> [LIBS <targets>] [TIMEOUT <seconds>] [COMPUTES] [INLINES] [ALONE])
#
# A GoogleTest executable linked with the library. Every TEST in it becomes a CTest named <name>.<suite>.<test>, with the
# given label (one of unit, model, stress, property, apps, multi, as docs/testing.md has them: CMake 3.25 loses the second of a list;
# consumer, bench and policy are those of tests that are no such executables). It may include headers of src/. TIMEOUT holds for each
# TEST (default 120 s) and is twice as long in sanitizer builds.
# A sanitizer's process takes longer to begin and to end than most TESTs: in its builds a CTest is a suite, <name>.<suite>, but for
# whole jobs (label multi), whose TESTs wait for others and would wait one after the other.
# COMPUTES: its own sources compute for so long that they are always optimised.
# INLINES: what it tests is inline code (joins, switches of stacks), which a release compiles into its sources as into a program's; a
# sanitizer compiles them quickly.
# ALONE: no other test runs at the same time; for what is only so while nobody else wants the cores.
# ONE_THREAD: sources whose TESTs have one thread, and start no process that has more. ThreadSanitizer looks at what threads share: in its
# build they are left out, and the whole executable where there are no others.
# The other tests' sources look on, and are compiled quickly (StrataPrecompile.cmake).
#
# With STRATA_UNITY fifteen sources at a time are compiled as one, so names in their anonymous namespaces have to differ.
include(GoogleTest)

function(strata_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COMPUTES;INLINES;ALONE" "TIMEOUT" "SOURCES;ONE_THREAD;LABELS;LIBS")
  if(arg_ONE_THREAD AND NOT STRATA_SANITIZE MATCHES "thread")
    list(APPEND arg_SOURCES ${arg_ONE_THREAD})
    list(SORT arg_SOURCES)
  elseif(arg_ONE_THREAD AND NOT arg_SOURCES)
    return()
  endif()
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES OR NOT arg_LABELS)
    message(FATAL_ERROR "strata_add_test(${name}): SOURCES or ONE_THREAD, and LABELS, are needed; not understood: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  list(LENGTH arg_LABELS label_count)
  if(label_count GREATER 1)
    message(FATAL_ERROR "strata_add_test(${name}): one label, not '${arg_LABELS}'")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(STRATA_SANITIZED)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 2")
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE strata::strata GTest::gtest_main ${arg_LIBS})
  if(STRATA_HAS_UCX)
    target_compile_definitions(${name} PRIVATE STRATA_HAS_UCX=1)
  endif()
  if(NOT arg_COMPUTES AND (STRATA_SANITIZED OR NOT arg_INLINES))
    strata_compile_quickly(${name})
  endif()
  strata_use_precompiled(${name} strata_test_headers)
  strata_unite(${name} BATCH 15)
  set(alone FALSE)
  if(arg_ALONE)
    set(alone TRUE)
  endif()
  if(STRATA_SANITIZED AND NOT arg_LABELS STREQUAL "multi")
    math(EXPR timeout "${arg_TIMEOUT} * 5")
    set(suites ${CMAKE_CURRENT_BINARY_DIR}/${name}_suites)
    file(GENERATE OUTPUT ${suites}.cmake CONTENT "include(\"${PROJECT_SOURCE_DIR}/cmake/StrataSuites.cmake\")
strata_add_suites(${name} \"$<TARGET_FILE:${name}>\" \"${suites}.txt\"
  WORKING_DIRECTORY \"${CMAKE_CURRENT_BINARY_DIR}\" TIMEOUT ${timeout} RUN_SERIAL ${alone} LABELS ${arg_LABELS})\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${suites}.cmake)
    return()
  endif()
  gtest_discover_tests(${name}
    TEST_PREFIX ${name}.
    DISCOVERY_TIMEOUT 60
    DISCOVERY_MODE PRE_TEST  # a build does not run what it built
    PROPERTIES TIMEOUT ${arg_TIMEOUT} RUN_SERIAL ${alone} LABELS "${arg_LABELS}")
endfunction()

# strata_test_policies(<name>...): each of these executables once more under every policy that is not the default, all its
# TESTs in one CTest, <name>.<policy>. They make their runtimes with with_workers() of tests/sched/support.hpp.
function(strata_test_policies)
  set(timeout 300)  # for all TESTs together
  if(STRATA_SANITIZED)
    set(timeout 1500)
  endif()
  foreach(name IN LISTS ARGN)
    foreach(policy rotator locked)
      add_test(NAME ${name}.${policy} COMMAND ${name} --gtest_brief=1)
      set_tests_properties(${name}.${policy} PROPERTIES ENVIRONMENT STRATA_TEST_POLICY=${policy} LABELS policy TIMEOUT ${timeout})
    endforeach()
  endforeach()
endfunction()

# A test that starts whole jobs: of `program`, a target, by the command (tests/launch/command.hpp).
function(strata_runs_jobs test program)
  target_include_directories(${test} PRIVATE ${PROJECT_SOURCE_DIR}/tests/launch)
  target_compile_definitions(${test} PRIVATE
    STRATA_COMMAND="$<TARGET_FILE:strata_command>"
    STRATA_LAUNCH_NODE="$<TARGET_FILE:${program}>")
  add_dependencies(${test} strata_command ${program})
endfunction()
