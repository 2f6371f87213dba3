// SPDX-License-Identifier: Apache-2.0
#include "strata/detail/worker.hpp"

#include <algorithm>

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
  // Back into the deque, where thieves can reach it: half the deque's worth, the oldest of them
  // first, as if just pushed.
  constexpr std::size_t batch = 4096;
  while (!overflow.empty()) {
    // Without memory, of which there may be none. By number: what finds no room comes back behind
    // them.
    const std::size_t n = std::min(batch, overflow.size());
    const std::size_t from = overflow.size() - n;
    for (std::size_t i = 0; i < n; ++i) push(overflow[from + i]);
    const auto first = overflow.begin() + static_cast<std::ptrdiff_t>(from);
    overflow.erase(first, first + static_cast<std::ptrdiff_t>(n));
    // Thieves may have taken the whole batch. A worker that gave up then could fall asleep over the
    // rest, which nobody else sees.
    if (task* t = deque.pop()) return t;
  }
  return nullptr;
}

}  // namespace strata::detail
