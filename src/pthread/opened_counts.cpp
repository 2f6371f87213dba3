// SPDX-License-Identifier: Apache-2.0
#include "pthread/opened_counts.hpp"

#include "pthread/signals.hpp"

namespace strata::detail::posix {

std::uint32_t opened_counts::change(const sigset_t& more, const sigset_t& less) noexcept {
  for (int number = 1; number < NSIG; ++number) {
    auto& n = count_[static_cast<std::size_t>(number)];
    if (has_signal(more, number)) n.fetch_add(1, std::memory_order_relaxed);
    if (has_signal(less, number)) n.fetch_sub(1, std::memory_order_relaxed);
  }
  // Release: with the counts. Partner: come_round().
  return changes_.fetch_add(1, std::memory_order_release) + 1;
}

opened_counts::outcome opened_counts::await_seen(std::uint32_t change) noexcept {
  // Acquire: what the handlers did that ran until then. Partner: come_round().
  const std::uint32_t seen = seen_.load(std::memory_order_acquire);
  if (static_cast<std::int32_t>(seen - change) >= 0) return outcome::seen;
  return os::blocking_futex_wait(seen_, seen, moment_ns) == os::futex_outcome::timed_out
             ? outcome::a_moment_has_passed
             : outcome::not_yet;
}

sigset_t opened_counts::come_round() noexcept {
  // Acquire: with the counts. Partner: change(), after which somebody rings.
  const std::uint32_t now = changes_.load(std::memory_order_acquire);
  sigset_t set;
  sigemptyset(&set);
  for (int number = 1; number < NSIG; ++number) {
    if (is_opened(number)) sigaddset(&set, number);
  }
  // Release: what came before that change has been handled. Partner: await_seen().
  seen_.store(now, std::memory_order_release);
  os::futex_wake(seen_, 1);
  return set;
}

}  // namespace strata::detail::posix
