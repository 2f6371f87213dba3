# SPDX-License-Identifier: Apache-2.0
# `cmake --install`: headers, library, find_package(strata), strata.pc and, for programs in C, strata-pthread.pc.
include(CMakePackageConfigHelpers)

install(TARGETS strata strata_folder EXPORT strata-targets)
install(DIRECTORY include/strata DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")

install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/strata)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/strata/docs)
install(FILES tools/gdb/strata-gdb.py DESTINATION ${CMAKE_INSTALL_DATADIR}/strata/gdb)

if(BUILD_SHARED_LIBS)
  set(strata_is_shared ON)
else()
  set(strata_is_shared OFF)
endif()

# What a linker for C has to be told where it is given a static libstrata.
set(strata_cxx_libraries stdc++ m)
if(c++ IN_LIST CMAKE_CXX_IMPLICIT_LINK_LIBRARIES)
  set(strata_cxx_libraries c++ m)
endif()

set(strata_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/strata)
install(EXPORT strata-targets NAMESPACE strata:: DESTINATION ${strata_cmake_dir})
configure_package_config_file(cmake/strata-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/strata-config.cmake
  INSTALL_DESTINATION ${strata_cmake_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/strata-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/strata-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/strata-config-version.cmake
  DESTINATION ${strata_cmake_dir})

# A static library hands its own dependencies to whoever links it, to C's linker also the C++ library's; a shared one has resolved
# them itself.
if(strata_is_shared)
  set(strata_pc_requires "Requires.private: hwloc libsodium")
  set(strata_pc_cxx_libraries "")
else()
  set(strata_pc_requires "Requires: hwloc libsodium")
  list(JOIN strata_cxx_libraries " -l" strata_pc_cxx_libraries)
  string(PREPEND strata_pc_cxx_libraries " -l")
endif()
# Relative, so that the installed tree can be moved; but a folder that is given from the root on stays where it is, and from such a
# one for libraries no way leads to the others.
set(strata_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(strata_pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH strata_pc_prefix /${strata_pc_dir} /)
  string(PREPEND strata_pc_prefix "\${pcfiledir}/")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(strata_pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
else()
  set(strata_pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
set(strata_pc_cflags "-std=c++20 -pthread")
if(STRATA_DEBUG_CHECKS)
  string(APPEND strata_pc_cflags " -DSTRATA_DEBUG_CHECKS=1")
endif()
foreach(name strata strata-pthread)
  configure_file(cmake/${name}.pc.in ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION ${strata_pc_dir})
endforeach()
