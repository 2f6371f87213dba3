// SPDX-License-Identifier: Apache-2.0
// How the taker of signals sleeps, and is woken: basic_bell.hpp over the kernel's signals.
#pragma once
#include <signal.h>
#include <sys/types.h>

#include "pthread/basic_bell.hpp"

namespace strata::detail::posix {

struct bell_signals {
  using set_type = sigset_t;
  using info_type = siginfo_t;
  using thread_type = pid_t;
  // Which no kernel sends, and no program has a reason to. What it sends to the process all the
  // same ends the sleep, too.
  static constexpr int ring_number = SIGSTKFLT;

  [[nodiscard]] static pid_t note_caller() noexcept;
  [[nodiscard]] static bool can_ring(pid_t whom) noexcept;
  static void send_ring(pid_t to) noexcept;
  static int await(const sigset_t& set, siginfo_t& info) noexcept;
  static int await_ring(siginfo_t& info) noexcept;
  static int look(const sigset_t& set, siginfo_t& info) noexcept;
  // A ring, or the program's.
  [[nodiscard]] static bool is_ring(const siginfo_t& info) noexcept;
};

class bell : public basic_bell<bell_signals> {
 public:
  static constexpr int number = bell_signals::ring_number;
  // Of one that has come to a handler.
  [[nodiscard]] static bool is_marked(const siginfo_t& info) noexcept;
};

}  // namespace strata::detail::posix
