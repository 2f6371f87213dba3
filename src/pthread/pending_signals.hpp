// SPDX-License-Identifier: Apache-2.0
// What has been sent and not taken yet, to a thread or to the process: one of a number, as the
// kernel has it, but all real-time signals in their order, and whatever their senders have said.
#pragma once
#include <signal.h>

#include <cstdint>

#include "sync/spin_lock.hpp"

namespace strata::detail::posix {

// In memory that no handler's malloc() is asked for.
struct kept_signal {
  siginfo_t info;
  kept_signal* next;
};
extern constinit spin_lock kept_signals_lock;  // of that memory

// By one caller at a time, also in handlers.
struct pending_signals {
  sigset_t numbers{};
  kept_signal* infos = nullptr;  // in order of arrival, as far as there is more to say

  // False: of a real-time signal that has not been kept, as there is no memory.
  bool add(const siginfo_t& info) noexcept;
  // The lowest number of those in `set`; 0: none.
  int take(const sigset_t& set, siginfo_t& info) noexcept;
  void forget() noexcept;
  void forget(int number) noexcept;
  [[nodiscard]] std::uint64_t bits() const noexcept;
};

}  // namespace strata::detail::posix
