// SPDX-License-Identifier: Apache-2.0
// scanf() by the names that sources call it by which are built with glibc 2.38 or newer, for
// systems that have an older one. As there it reads by itself.
#include <cstdarg>
#include <cstdio>

#include "c_librarys.h"

extern "C" {
int scan_by_new_name(std::FILE* stream, const char* format,
                     std::va_list more) __asm__("__isoc23_vfscanf");
int scan_by_new_name(std::FILE* stream, const char* format, std::va_list more) {
  return C_LIBRARYS(vfscanf)(stream, format, more);
}
int scan_all_by_new_name(std::FILE* stream, const char* format, ...) __asm__("__isoc23_fscanf");
int scan_all_by_new_name(std::FILE* stream, const char* format, ...) {
  std::va_list more;
  va_start(more, format);
  const int found = scan_by_new_name(stream, format, more);
  va_end(more);
  return found;
}
}
