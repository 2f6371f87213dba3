// SPDX-License-Identifier: Apache-2.0
// The C library's names, as the program finds them.
#include <grp.h>
#include <netdb.h>
#include <pwd.h>

#include "context/program_locals.hpp"
#include "pthread/preload/allocators.hpp"
#include "pthread/preload/closing.hpp"
#include "pthread/preload/descriptor_wait.hpp"
#include "pthread/preload/files.hpp"
#include "pthread/preload/handlers.hpp"
#include "pthread/preload/kernel_thread.hpp"
#include "pthread/preload/kernel_waits.hpp"
#include "pthread/preload/native.hpp"
#include "pthread/preload/polls.hpp"
#include "pthread/preload/program_code.hpp"
#include "pthread/preload/signal_stacks.hpp"
#include "pthread/preload/sockets.hpp"
#include "pthread/preload/streams.hpp"
#include "pthread/preload/ticks.hpp"
#include "pthread/preload/transfers.hpp"
#include "pthread/preload/waiting_by_itself.hpp"
#include "strata/pthread.h"
#include "strata/threads.h"

// The rare ones apart, so that the others keep no frame; by a jump, so that theirs is the caller's.
#define X(result, name, ours, parameters, arguments)                                            \
  extern "C" result real_##name parameters __asm__("__wrap_" #name);                            \
  extern "C" [[gnu::visibility("default")]] result forward_##name parameters __asm__(#name);    \
  [[gnu::noinline]] static result rarely_##name parameters {                                    \
    return strata::preload::calls_natively(__builtin_return_address(0)) ? real_##name arguments \
                                                                        : ours arguments;       \
  }                                                                                             \
  result forward_##name parameters {                                                            \
    if (strata::preload::native_depth.load(std::memory_order_relaxed) != 0) [[unlikely]]        \
      return rarely_##name arguments;                                                           \
    return ours arguments;                                                                      \
  }
#define X_LAST(result, name, ours, parameters, arguments)                                       \
  extern "C"                                                                                    \
      [[noreturn, gnu::visibility("default")]] result forward_##name parameters __asm__(#name); \
  result forward_##name parameters { ours arguments; }
// Names of users and hosts: the C library asks with locks of its own, which stop a worker.
#define X_NATIVE(result, name, parameters, arguments)                                        \
  extern "C" result real_##name parameters __asm__("__wrap_" #name);                         \
  extern "C" [[gnu::visibility("default")]] result forward_##name parameters __asm__(#name); \
  result forward_##name parameters {                                                         \
    const strata::preload::not_suspended here;                                               \
    return real_##name arguments;                                                            \
  }
#include "pthread/preload/names.inc"

// What comes by dlopen() is used by what this finds there; and who calls dlopen() itself decides
// where that looks, so that one cannot be ours.
extern "C" void* real_dlsym(void* handle, const char* name) __asm__("__wrap_dlsym");
extern "C" [[gnu::visibility("default")]] void* forward_dlsym(void* handle,
                                                              const char* name) __asm__("dlsym");
void* forward_dlsym(void* handle, const char* name) {
  strata::detail::find_later_program_locals();
  return real_dlsym(handle, name);
}

extern "C" int real_dlclose(void* library) __asm__("__wrap_dlclose");
extern "C" [[gnu::visibility("default")]] int forward_dlclose(void* library) __asm__("dlclose");
int forward_dlclose(void* library) {
  const strata::preload::closing_library here;
  return real_dlclose(library);
}
