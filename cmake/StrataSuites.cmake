# SPDX-License-Identifier: Apache-2.0
# strata_add_suites(<name> <executable> <known> <property of CTests> <value>...): a CTest <name>.<suite> for each suite of a GoogleTest
# executable, all TESTs of the suite in one process. Read by ctest (StrataTest.cmake), since a build does not run what it built.
function(strata_add_suites name executable known)
  # Asked once: until it is linked anew an executable has the same suites.
  if(NOT EXISTS "${known}" OR NOT "${known}" IS_NEWER_THAN "${executable}")
    execute_process(COMMAND "${executable}" --gtest_list_tests
      TIMEOUT 60 OUTPUT_VARIABLE listed ERROR_VARIABLE said RESULT_VARIABLE status)
    if(NOT status EQUAL 0)
      message(FATAL_ERROR "${executable} --gtest_list_tests: ${status}\n${said}")
    endif()
    # A suite's line ends with a point, or goes on with the type that it is for; those of its TESTs begin with blanks.
    string(REGEX MATCHALL "\n[^ \n]+\\.[ \n]" suites "\n${listed}")
    list(TRANSFORM suites REPLACE "\n([^ ]+)\\.[ \n]" "\\1")
    file(WRITE "${known}" "${suites}")
  endif()
  file(READ "${known}" suites)
  foreach(suite IN LISTS suites)
    add_test("${name}.${suite}" "${executable}" --gtest_brief=1 "--gtest_filter=${suite}.*")
    set_tests_properties("${name}.${suite}" PROPERTIES ${ARGN})
  endforeach()
endfunction()
