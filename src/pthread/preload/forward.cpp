// SPDX-License-Identifier: Apache-2.0
// The C library's names, as the program finds them.
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
#include "pthread/preload/names.inc"
