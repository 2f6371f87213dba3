// SPDX-License-Identifier: Apache-2.0
// How the taker of signals sleeps: until a signal comes for the process, or somebody rings. Nothing
// but a signal ends the kernel's wait for signals, so who rings sends one, to the sleeper alone. It
// has a number that the program may use, too; but the kernel keeps what is sent to a thread apart
// from what is sent to the process, so neither takes the other's place, and ours has a mark.
//
// Who rings sends nothing while the sleeper is awake, so that it can send itself a signal of that
// number, for which a ring could be taken: what is on its way then it knows of, and takes before.
#pragma once
#include <signal.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace strata::detail::posix {

class bell {
 public:
  // Which no kernel sends, and no program has a reason to. What it sends to the process all the
  // same ends the sleep, too.
  static constexpr int number = SIGSTKFLT;

  // ---- by anybody, also in handlers ----
  // What the caller did before is seen by who comes back from sleep() or has_rung() afterwards.
  void ring() noexcept;
  // The same, and once more where a ring is on its way: a program that ignores its number from now
  // on has thrown it away.
  void ring_again() noexcept;
  // 0: there is none yet, and rings are not heard.
  [[nodiscard]] pid_t sleeper() const noexcept { return sleeper_.load(std::memory_order_acquire); }
  // Of one that has come to a handler.
  [[nodiscard]] static bool is_marked(const siginfo_t& info) noexcept;

  // ---- by the sleeper ----
  // The calling OS thread is it; it has all signals blocked.
  void begin() noexcept;
  // The number of one that has come for the process, of `set` or our own; 0: somebody has rung.
  int sleep(const sigset_t& set, siginfo_t& info) noexcept;
  // The number of one that is there already; 0: none.
  int look(const sigset_t& set, siginfo_t& info) noexcept;
  // Somebody has rung since it was asked, or slept, last.
  bool has_rung() noexcept;
  // Until the next sleep() no ring comes to the caller.
  void quieten() noexcept;

 private:
  enum class state : std::uint8_t { awake, asleep, called };

  void send() const noexcept;
  // A ring, or the program's; as sleep() and look().
  [[nodiscard]] static bool is_ring(const siginfo_t& info) noexcept;
  void wake_up() noexcept;
  void take_ring() noexcept;

  std::atomic<state> state_{state::awake};
  std::atomic<bool> rung_{false};
  std::atomic<pid_t> sleeper_{0};
  // By the sleeper alone.
  bool is_coming_ = false;  // a ring, though it is awake
  bool has_kept_ = false;   // a signal of the program, which has come while it waited for a ring
  siginfo_t kept_{};
};

}  // namespace strata::detail::posix
