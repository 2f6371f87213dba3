// SPDX-License-Identifier: Apache-2.0
// Calls that the runtime itself makes through the C++ library: its workers are kernel threads.
#pragma once

namespace strata::preload {

// While it is not 0, what this OS thread calls by the C library's names is the C library's.
extern thread_local constinit int native_depth __attribute__((tls_model("initial-exec")));

// Where the C library, or whoever comes after us, has `name`. Ends the process when nobody has.
void* find_real(const char* name) noexcept;

// The C library's syscall(), also where nothing can be looked up: before the library is ready, in a
// handler, after a vfork(). What the runtime calls by that name is this.
extern "C" long real_syscall(long number, long a, long b, long c, long d, long e,
                             long f) noexcept __asm__("__wrap_syscall");

}  // namespace strata::preload
