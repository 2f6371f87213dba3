// SPDX-License-Identifier: Apache-2.0
// To which thread a signal of the process goes, and what becomes of it there. It is offered to one
// that has not blocked it: that takes it, or declines, or does not come in time. Then its handler
// runs on the taker's OS thread in the thread's place, if it may. By the taker (signal_taker.hpp).
#pragma once
#include <signal.h>

#include <cstdint>

#include "pthread/record.hpp"

namespace strata::detail::posix {

struct process_offer : signal_offer {
  explicit process_offer(const siginfo_t& what) noexcept
      : signal_offer{what.si_signo, false, false}, info(what) {}
  const siginfo_t& info;
  bool to_who_waits = false;  // and to nobody else
  // Only to who runs its handler, which it interrupts, or comes after: we do not run it beside.
  bool nests = false;
  bool is_run_by_some = false;  // who could take it otherwise
  // Whether main() can be reminded (reminders.hpp): while the kernel has called a handler there
  // that blocks this one, it is as good as blocked; where nobody else takes it, main() comes to it
  // afterwards.
  bool heeds_handlers = false;
  bool reminds = false;
  bool has_woken = false;
  pthread_t thread{};
};

enum class fate : std::uint8_t { taken, to_be_offered, ours };

// There is a thread that has not blocked it.
[[nodiscard]] bool is_wanted(int number);
// For whom it is pending now, main() before others, and those who wait before those who do not;
// null: nobody.
[[nodiscard]] record* find_thread(process_offer& o);
// Until r has taken it, or declined, or for as long as a thread that can come at once has for it.
// `ours`: its handler is the caller's, and has_handled() follows.
[[nodiscard]] fate await_thread(record& r, process_offer& o, siginfo_t& info,
                                const struct sigaction& how);
void has_handled(record& r, const process_offer& o, const struct sigaction& how);

}  // namespace strata::detail::posix
