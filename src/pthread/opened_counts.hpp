// SPDX-License-Identifier: Apache-2.0
// How many threads have unblocked each signal. The taker of signals waits for those that somebody
// has; who changes a count can wait until the taker knows.
#pragma once
#include <signal.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "os/futex.hpp"

namespace strata::detail::posix {

class opened_counts {
 public:
  // One at a time. The number of the change; the taker is to be rung for.
  std::uint32_t change(const sigset_t& more, const sigset_t& less) noexcept;
  // Relaxed: a change is followed by a ring.
  [[nodiscard]] bool is_opened(int number) const noexcept {
    return count_[static_cast<std::size_t>(number)].load(std::memory_order_relaxed) != 0;
  }

  enum class outcome : std::uint8_t { seen, not_yet, a_moment_has_passed };
  // Until the taker has come round since that change: what had been sent by then is handled.
  outcome await_seen(std::uint32_t change) noexcept;
  // Until it has come round for the first time, or a moment has passed.
  void await_first() noexcept { os::blocking_futex_wait(seen_, 0, moment_ns); }

  // By the taker, which has handled what came before: what it waits for next.
  sigset_t come_round() noexcept;

 private:
  static constexpr std::int64_t moment_ns = 1'000'000;

  std::array<std::atomic<unsigned>, NSIG> count_{};
  std::atomic<std::uint32_t> changes_{0};
  os::futex_word seen_{0};  // of these, by the taker
};

}  // namespace strata::detail::posix
