// SPDX-License-Identifier: Apache-2.0
// What has been sent and not taken yet, to a thread or to the process: one of a number, as the
// kernel has it, but all real-time signals in their order, and whatever their senders have said.
#pragma once
#include <signal.h>

#include <array>
#include <cstdint>

#include "sync/spin_lock.hpp"

namespace strata::detail::posix {

// In memory that no handler's malloc() is asked for.
struct kept_signal {
  siginfo_t info;
  kept_signal* next;
};
extern constinit spin_lock kept_signals_lock;  // of that memory

// The program ignores it from now on: what is pending of it, for whomever, is thrown away, as the
// kernel does with what it has itself. That is only counted here, since a handler may do it
// wherever it interrupts; each finds it when it is asked next.
void note_ignored(int number) noexcept;

// By one caller at a time, also in handlers.
struct pending_signals {
  sigset_t numbers{};
  kept_signal* infos = nullptr;  // in order of arrival, as far as there is more to say

  // How often each of them had been ignored when it was added; of others, nothing.
  std::array<std::uint32_t, NSIG> ignored_before{};

  // False: of a real-time signal that has not been kept, as there is no memory.
  bool add(const siginfo_t& info) noexcept;
  // The lowest number of those in `set`; 0: none.
  int take(const sigset_t& set, siginfo_t& info) noexcept;
  void forget() noexcept;
  [[nodiscard]] std::uint64_t bits() noexcept;

 private:
  bool has(int number) noexcept;
  void forget(int number) noexcept;
};

}  // namespace strata::detail::posix
