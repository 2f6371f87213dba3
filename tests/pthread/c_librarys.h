/* SPDX-License-Identifier: Apache-2.0 */
/* C_LIBRARYS(name): that function as the C library has it, whichever way the program is built: by
   its address, which neither the folder's names nor those of what is preloaded stand before. By it
   programs have kernel threads. */
#pragma once
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

static inline void* of_c_library(const char* name) {
  static const char* const libraries[] = {"libc.so.6", "libpthread.so.0"}; /* before glibc 2.34 */
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; ++i) {
    void* const library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
    void* const found = library != NULL ? dlsym(library, name) : NULL;
    if (found != NULL) return found;
  }
  abort();
}
#define C_LIBRARYS(name) ((__typeof__(&(name)))of_c_library(#name))
