// SPDX-License-Identifier: Apache-2.0
// The C library's names, as the program finds them.
#include <grp.h>
#include <netdb.h>
#include <pwd.h>

#include "pthread/preload/descriptor_wait.hpp"
#include "pthread/preload/handlers.hpp"
#include "pthread/preload/kernel_thread.hpp"
#include "pthread/preload/kernel_waits.hpp"
#include "pthread/preload/native.hpp"
#include "pthread/preload/polls.hpp"
#include "pthread/preload/sockets.hpp"
#include "pthread/preload/transfers.hpp"
#include "strata/pthread.h"

#define X(result, name, ours, parameters, arguments)                                         \
  extern "C" result real_##name parameters __asm__("__wrap_" #name);                         \
  extern "C" [[gnu::visibility("default")]] result forward_##name parameters __asm__(#name); \
  result forward_##name parameters {                                                         \
    if (strata::preload::native_depth != 0) [[unlikely]]                                     \
      return real_##name arguments;                                                          \
    return ours arguments;                                                                   \
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
