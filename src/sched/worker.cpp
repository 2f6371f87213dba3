// SPDX-License-Identifier: Apache-2.0
#include "strata/detail/worker.hpp"

#include <array>

#include "sched/scheduler.hpp"

namespace strata::detail {
namespace {

frame_depot no_depot __attribute__((init_priority(101)));
worker no_worker_object __attribute__((init_priority(102))) (no_depot);

}  // namespace

worker& no_worker = no_worker_object;

extern "C" {
thread_local constinit worker* strata_current_worker __attribute__((tls_model("initial-exec"))) =
    &no_worker_object;
}

#if !defined(STRATA_ASM_TLS)
[[gnu::noinline]] worker& this_worker_out_of_line() noexcept { return *strata_current_worker; }
#endif

bool worker::tend() {
  const push_outcome outcome = deque.tend();
  place& here = static_cast<place&>(*this);
  if (outcome == push_outcome::reminded) {
    owner->look_for_sleepers(here);
  } else if (outcome != push_outcome::done) {
    // A full deque may have shared as well.
    events.shares.add();
    owner->work_appeared(here);
  }
  return outcome != push_outcome::full;
}

task* worker::pop_overflow() {
  // Back into the deque, the oldest of them first, as if just pushed. Without memory, of which
  // there may be none, and on stacks that are nearly used up.
  std::array<task*, 256> some;
  while (const std::size_t n = overflow.take_newest(some.data(), some.size())) {
    for (std::size_t i = 0; i < n; ++i) push(some[i]);
    // Thieves may have taken all of them. A worker that gave up then could fall asleep over the
    // rest.
    if (task* t = deque.pop()) return t;
  }
  return nullptr;
}

}  // namespace strata::detail
