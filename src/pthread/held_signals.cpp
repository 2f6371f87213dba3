// SPDX-License-Identifier: Apache-2.0
#include "pthread/held_signals.hpp"

#include <atomic>

#include "pthread/holding.hpp"
#include "pthread/pending_signals.hpp"
#include "pthread/signals.hpp"

namespace strata::detail::posix {
namespace {

constinit spin_lock held_lock;
constinit pending_signals held;
// Their numbers; changed with the lock. Relaxed: the records' locks order it, see hold_signal().
constinit std::atomic<std::uint64_t> held_numbers{0};

void note_numbers() noexcept {
  std::uint64_t bits = 0;
  for (int number = 1; number < NSIG; ++number) {
    if (has_signal(held.numbers, number)) bits |= signal_bit(number);
  }
  held_numbers.store(bits, std::memory_order_relaxed);
}

}  // namespace

void hold_signal(const siginfo_t& info) noexcept {
  const holding lock(held_lock);
  (void)held.add(info);
  note_numbers();
}

std::uint64_t held_signals() noexcept { return held_numbers.load(std::memory_order_relaxed); }

int take_held(const sigset_t& set, siginfo_t& info) noexcept {
  if (held_signals() == 0) return 0;
  const holding lock(held_lock);
  const int number = held.take(set, info);
  note_numbers();
  return number;
}

void forget_held_signals() noexcept {
  if (held_lock.is_held()) held_lock.unlock();  // by a thread that is not here
  held.forget();
  note_numbers();
}

}  // namespace strata::detail::posix
