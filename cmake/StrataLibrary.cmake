# SPDX-License-Identifier: Apache-2.0
# What the library needs and what it gives to its users. Its sources are listed by the folders of src/.

find_package(PkgConfig REQUIRED)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc>=2.0)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium>=1.0.11)

target_compile_features(strata PUBLIC cxx_std_20)
target_include_directories(strata
  PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
  PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(strata PUBLIC Threads::Threads PRIVATE PkgConfig::HWLOC PkgConfig::SODIUM ${CMAKE_DL_LIBS})
if(STRATA_HAS_UCX)
  target_include_directories(strata SYSTEM PRIVATE ${STRATA_UCX_INCLUDE_DIR})
  target_compile_definitions(strata PRIVATE STRATA_HAS_UCX=1)
endif()
if(STRATA_HAS_PMIX)
  target_include_directories(strata SYSTEM PRIVATE ${STRATA_PMIX_INCLUDE_DIR})
  target_compile_definitions(strata PRIVATE STRATA_HAS_PMIX=1)
endif()
# Public: a header compiled with other checks than the library would be another definition of the same function.
target_compile_definitions(strata PUBLIC $<$<BOOL:${STRATA_DEBUG_CHECKS}>:STRATA_DEBUG_CHECKS=1>)
set_target_properties(strata PROPERTIES VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})  # before 1.0 every minor version may break

# strata::pthread: the folder for programs with POSIX threads, whose headers come before the C library's (docs/pthread.md).
add_library(strata_folder INTERFACE)
add_library(strata::pthread ALIAS strata_folder)
set_target_properties(strata_folder PROPERTIES EXPORT_NAME pthread)
target_include_directories(strata_folder BEFORE INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include/strata/shim> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/strata/shim>)
target_link_libraries(strata_folder INTERFACE strata)
