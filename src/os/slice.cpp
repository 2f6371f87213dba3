// SPDX-License-Identifier: Apache-2.0
#include "os/slice.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace strata::os {
namespace {

// The kernel's struct sched_attr, first version. Debian's headers and glibc 2.36 have none.
struct attributes {
  std::uint32_t size;
  std::uint32_t policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime_ns;  // of SCHED_OTHER: the turn that is asked for
  std::uint64_t deadline_ns;
  std::uint64_t period_ns;
};
static_assert(sizeof(attributes) == 48);

constexpr std::uint64_t shortest_turn_ns = 100'000;

}  // namespace

void prefer_short_turns() noexcept {
  attributes a{};
  if (::syscall(SYS_sched_getattr, 0, &a, sizeof a, 0) != 0 || a.policy != SCHED_OTHER) return;
  a.size = sizeof a;
  a.runtime_ns = shortest_turn_ns;
  (void)::syscall(SYS_sched_setattr, 0, &a, 0);  // refused: as before
}

}  // namespace strata::os
