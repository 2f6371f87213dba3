// SPDX-License-Identifier: Apache-2.0
// What pthread_create() has been asked for, read from attributes or the process's defaults.
#pragma once
#include <pthread.h>
#include <signal.h>

#include <cstddef>
#include <optional>

namespace strata::detail {
class scheduler;
}

namespace strata::detail::posix {

inline constexpr std::size_t usual_guard_bytes = 4096;  // as the C library has it

struct wanted_thread {
  bool detached = false;
  std::size_t asked_bytes = 0;       // of stack; 0: the runtime's usual
  bool accepts_more = false;         // the usual will do if it is as large
  std::byte* given_stack = nullptr;  // the program's own, of that size
  std::size_t guard_bytes = usual_guard_bytes;
  bool inherits = true;
  int policy = SCHED_OTHER;
  int priority = 0;
  std::optional<sigset_t> mask;  // none: its maker's
};

// 0, or what pthread_create() answers. Null: the defaults.
int read_wanted(const pthread_attr_t* attributes, wanted_thread& wanted);

// Of a stack of its own; 0: a usual one of `home` will do, or it has its own memory.
[[nodiscard]] std::size_t bytes_of_stack(const wanted_thread& wanted,
                                         const scheduler& home) noexcept;

}  // namespace strata::detail::posix
