// SPDX-License-Identifier: Apache-2.0
// Waiting on the worker, by who cannot be suspended, for what is held for moments by who goes on on
// another one.
#pragma once
#include <sched.h>
#include <time.h>

namespace strata::detail::posix {

// Until attempt() is true; false after about a second: its holder may wait for the caller's worker.
template <class Attempt>
bool attempt_on_worker(const Attempt& attempt) {
  constexpr int yields_max = 100;
  constexpr int times_max = 20'000;
  constexpr timespec a_little{0, 50'000};
  for (int times = 0; times < times_max; ++times) {
    if (attempt()) return true;
    if (times < yields_max) {
      sched_yield();
    } else {
      nanosleep(&a_little, nullptr);
    }
  }
  return false;
}

}  // namespace strata::detail::posix
