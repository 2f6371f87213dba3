// SPDX-License-Identifier: Apache-2.0
// Calls that the runtime itself makes through the C++ library: its workers are kernel threads.
#pragma once
#include <cstdarg>

namespace strata::preload {

// While it is not 0, what this OS thread calls by the C library's names is the C library's.
extern thread_local constinit int native_depth __attribute__((tls_model("initial-exec")));

// Where the C library, or whoever comes after us, has `name`. Ends the process when nobody has.
void* find_real(const char* name) noexcept;

// What follows the number of a system call. Always six are read, as the C library does. They are no
// parameters of a function that takes fewer from its caller: those on the stack may be written to
// by whom is called, and the caller has something else there.
struct call_arguments {
  long a, b, c, d, e, f;
};
inline call_arguments read_call_arguments(std::va_list& from) noexcept {
  // In this order.
  return {va_arg(from, long), va_arg(from, long), va_arg(from, long),
          va_arg(from, long), va_arg(from, long), va_arg(from, long)};
}

// What the C library's syscall() does, also where nothing can be looked up: before the library is
// ready, in a handler, after a vfork(). Calls of the runtime by that name come here.
long call_kernel(long number, const call_arguments& given) noexcept;
// The same for SYS_mmap, SYS_mremap and SYS_shmat, with a note of what is shared.
long call_mapping(long number, const call_arguments& given) noexcept;

}  // namespace strata::preload
