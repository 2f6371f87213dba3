# SPDX-License-Identifier: Apache-2.0
# A build for AArch64 on another processor, and tests under qemu-user: docs/porting.md has the commands. The folder $AARCH64_ROOT holds
# the libraries for it, Debian packages that were unpacked there. The C and C++ libraries are linked as the compiler brings them, and run from
# that folder.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(strata_root $ENV{AARCH64_ROOT})
set(CMAKE_FIND_ROOT_PATH ${strata_root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${strata_root})
set(ENV{PKG_CONFIG_LIBDIR} ${strata_root}/usr/lib/aarch64-linux-gnu/pkgconfig:${strata_root}/usr/share/pkgconfig)

set(CMAKE_CXX_FLAGS_INIT "-isystem ${strata_root}/usr/include -isystem ${strata_root}/usr/include/aarch64-linux-gnu")
set(strata_libraries ${strata_root}/usr/lib/aarch64-linux-gnu ${strata_root}/lib/aarch64-linux-gnu)
list(TRANSFORM strata_libraries PREPEND "-L" OUTPUT_VARIABLE strata_searched)
list(JOIN strata_searched " " strata_searched)
list(JOIN strata_libraries ":" strata_libraries)
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "${strata_searched} -Wl,-rpath-link,${strata_libraries}")
endforeach()
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static;-L;${strata_root})
