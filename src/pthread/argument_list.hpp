// SPDX-License-Identifier: Apache-2.0
// A program's arguments as execl() and its kin take them: one after the other, up to a null
// pointer.
#pragma once
#include <alloca.h>

#include <cstdarg>
#include <cstddef>

namespace strata::detail::posix {

// What f says of them, as execv() takes them. They lie on the stack: the child of a vfork() asks
// for no memory. `more` is behind the null pointer then.
template <class F>
int with_argument_list(const char* first, std::va_list& more, const F& f) {
  std::size_t count = 0;
  std::va_list counted;
  va_copy(counted, more);
  for (const char* next = first; next != nullptr; next = va_arg(counted, const char*)) ++count;
  va_end(counted);
  auto** const all = static_cast<char**>(alloca((count + 1) * sizeof(char*)));
  char** to = all;
  for (const char* next = first; next != nullptr; next = va_arg(more, const char*))
    *to++ = const_cast<char*>(next);
  *to = nullptr;
  return f(all);
}

}  // namespace strata::detail::posix
