// SPDX-License-Identifier: Apache-2.0
// The runtime in this library calls pthread_mutex_lock() and means the C library's. The linker
// turns each such call into one of __wrap_pthread_mutex_lock() (--wrap), which is here.
#include <dlfcn.h>
#include <grp.h>
#include <netdb.h>
#include <pwd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "os/system_call.hpp"
#include "pthread/preload/allocators.hpp"
#include "pthread/preload/closing.hpp"
#include "pthread/preload/files.hpp"
#include "pthread/preload/handlers.hpp"
#include "pthread/preload/kernel_thread.hpp"
#include "pthread/preload/kernel_waits.hpp"
#include "pthread/preload/native.hpp"
#include "pthread/preload/polls.hpp"
#include "pthread/preload/signal_stacks.hpp"
#include "pthread/preload/sockets.hpp"
#include "pthread/preload/streams.hpp"
#include "pthread/preload/ticks.hpp"
#include "pthread/preload/transfers.hpp"
#include "pthread/preload/waiting_by_itself.hpp"
#include "strata/pthread.h"
#include "strata/threads.h"

namespace strata::preload {

thread_local constinit std::atomic<int> native_depth{0};

[[noreturn]] static void end_without(const char* name) noexcept {
  std::fprintf(stderr,
               "strata pthread: this system's C library has no %s; it needs glibc 2.34 or newer\n",
               name);
  std::_Exit(2);
}

void* find_real(const char* name) noexcept {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) end_without(name);
  return found;
}

long call_kernel(long number, const call_arguments& given) noexcept {
  const long answer = os::system_call(number, given.a, given.b, given.c, given.d, given.e, given.f);
  constexpr long lowest_error = -4095;
  if (answer >= 0 || answer < lowest_error) return answer;
  errno = static_cast<int>(-answer);
  return -1;
}

}  // namespace strata::preload

extern "C" long real_syscall(long number, ...) __asm__("__wrap_syscall");
long real_syscall(long number, ...) {
  std::va_list more;
  va_start(more, number);
  const auto given = strata::preload::read_call_arguments(more);
  va_end(more);
  return strata::preload::call_kernel(number, given);
}

// This library's own handles keep what the program has open, too.
extern "C" int real_dlclose(void* library) __asm__("__wrap_dlclose");
int real_dlclose(void* library) {
  using function = int (*)(void*);
  static const auto found = reinterpret_cast<function>(strata::preload::find_real("dlclose"));
  return found(library);
}

// All else is found by it. Relaxed: the pointer is all there is to see. By jumps: the loader looks
// who has called.
extern "C" void* real_dlsym(void* handle, const char* name) __asm__("__wrap_dlsym");
void* real_dlsym(void* handle, const char* name) {
  using function = void* (*)(void*, const char*);
  static constinit std::atomic<function> found{nullptr};
  auto f = found.load(std::memory_order_relaxed);
  if (f == nullptr) [[unlikely]] {
    f = reinterpret_cast<function>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34"));
    if (f == nullptr) strata::preload::end_without("dlsym");
    found.store(f, std::memory_order_relaxed);
  }
  return f(handle, name);
}

// Where they are: looked up before the program runs, because a handler may call one wherever it
// interrupts; what is missing, and what is called before that, when it is called. Twice does no
// harm.
#define X(result, name, ours, parameters, arguments) \
  static constinit std::atomic<result(*) parameters> found_##name{nullptr};
#define X_LAST X
#define X_NATIVE(result, name, parameters, arguments) X(result, name, real, parameters, arguments)
#include "pthread/preload/names.inc"
#undef X

// Release: the pointer is all there is to see.
[[gnu::constructor(101)]] static void look_up_all() {
#define X(result, name, ours, parameters, arguments)                                  \
  found_##name.store(reinterpret_cast<result(*) parameters>(dlsym(RTLD_NEXT, #name)), \
                     std::memory_order_release);
#include "pthread/preload/names.inc"
#undef X
#undef X_LAST
}

#define REAL(result, name, parameters, arguments)                                  \
  auto f = found_##name.load(std::memory_order_acquire);                           \
  if (f == nullptr) {                                                              \
    f = reinterpret_cast<result(*) parameters>(strata::preload::find_real(#name)); \
    found_##name.store(f, std::memory_order_release);                              \
  }

#define X(result, name, ours, parameters, arguments)                 \
  extern "C" result real_##name parameters __asm__("__wrap_" #name); \
  result real_##name parameters {                                    \
    REAL(result, name, parameters, arguments)                        \
    return f arguments;                                              \
  }
#define X_LAST(result, name, ours, parameters, arguments)                         \
  extern "C" [[noreturn]] result real_##name parameters __asm__("__wrap_" #name); \
  result real_##name parameters {                                                 \
    REAL(result, name, parameters, arguments)                                     \
    f arguments;                                                                  \
    std::abort();                                                                 \
  }
#include "pthread/preload/names.inc"

// What the C++ library does for the runtime, with names that it finds at run time: ours.
namespace {
struct natively {
  natively() noexcept { add(1); }
  ~natively() { add(-1); }

 private:
  static void add(int n) noexcept {
    auto& depth = strata::preload::native_depth;
    depth.store(depth.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
};
}  // namespace

#define THROUGH(result, symbol, parameters, arguments)                     \
  extern "C" result next_##symbol parameters __asm__("__real_" #symbol);   \
  extern "C" result native_##symbol parameters __asm__("__wrap_" #symbol); \
  result native_##symbol parameters {                                      \
    const natively here;                                                   \
    return next_##symbol arguments;                                        \
  }
THROUGH(void, _ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE,
        (void* self, void* state, void (*depend)()), (self, state, depend))
THROUGH(void, _ZNSt6thread4joinEv, (void* self), (self))
THROUGH(void, _ZNSt6thread6detachEv, (void* self), (self))
THROUGH(void, _ZNSt18condition_variable10notify_oneEv, (void* self), (self))
THROUGH(void, _ZNSt18condition_variable10notify_allEv, (void* self), (self))
THROUGH(void, _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE, (void* self, void* lock),
        (self, lock))
