// SPDX-License-Identifier: Apache-2.0
// How a place sleeps.
#pragma once
#include <algorithm>
#include <cstdint>

#include "os/futex.hpp"
#include "sync/idle_set.hpp"

namespace strata::detail {

class scheduler;

// Of two times to wait, as those for a futex.
constexpr std::int64_t sooner(std::int64_t a_ns, std::int64_t b_ns) noexcept {
  if (a_ns == os::futex_forever_ns) return b_ns;
  return b_ns == os::futex_forever_ns ? a_ns : std::min(a_ns, b_ns);
}

struct place_futex {
  scheduler* owner = nullptr;

  // This thread looks at that state itself before it sleeps, as this one: scheduler::stand_in().
  struct looker {
    const os::futex_word* word = nullptr;
    sleeper who = sleeper::own_thread;
    unsigned place = 0;
  };
  static thread_local looker looking;

  static void wait(os::futex_word& word, std::uint32_t expected, sleeper who) noexcept {
    os::blocking_futex_wait_as(static_cast<std::uint32_t>(who), word, expected);
  }
  void wake(os::futex_word& word, sleeper who) const noexcept;
};

}  // namespace strata::detail
