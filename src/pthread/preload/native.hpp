// SPDX-License-Identifier: Apache-2.0
// Calls that the runtime itself makes through the C++ library: its workers are kernel threads.
#pragma once
#include <atomic>
#include <cstdarg>

namespace strata::preload {

// While it is not 0, what this OS thread calls by the C library's names is the C library's; or a
// tick has come that the thread on it has yet to give way for (ticks.hpp). One word, so that calls
// ask for both at once. Relaxed: by this OS thread alone, in handlers, too.
extern thread_local constinit std::atomic<int> native_depth
    __attribute__((tls_model("initial-exec")));
inline constexpr int turn_is_due = 1 << 30;
inline bool is_native() noexcept {
  return (native_depth.load(std::memory_order_relaxed) & ~turn_is_due) != 0;
}
// Where it is not 0, at the beginning of a call from `caller`: whether that is to be the C
// library's. Others may have run meanwhile, and handlers of the caller's; its cancellation, if it
// is to act at once, does not return.
bool calls_natively(const void* caller);

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
