// SPDX-License-Identifier: Apache-2.0
// An exception has left a fiber. Nobody joins a fiber, so its whole runtime fails: tokens and
// fibers that have not begun are given up, those that run end, and only when nothing of it moves
// any more do the waiting tasks get the exception: what they unwind may be what a fiber was about
// to write to. When they have ended too, the runtime is as good as new.
#include <thread>
#include <utility>

#include "sched/scheduler.hpp"

namespace strata::detail {

void scheduler::fail(std::exception_ptr error) noexcept {
  const visit neighbours(*this);
  failure.begin(std::move(error), static_cast<bool>(neighbours),
                [&](const std::exception_ptr& e) { neighbours->computation_failed(e); });
}

void scheduler::clear_failure() {
  const std::exception_ptr seen = failure.get();
  while (seen != nullptr) {
    failure.wait_until_settled();
    // Who is in a call, or waits for a time to come, is no part of what has failed, and may be
    // there for ever.
    wait_idle(waits::none);
    // Nothing can be injected now, and a thread that takes a sleeper's place looks at the failure
    // afterwards (see lease()): if all sleep, the next to begin anything finds it cleared.
    const injected_work::closure nothing_comes_in(injected_);
    if (failure.try_end(seen, [&] { return nothing_comes_in && nothing_moves(); })) return;
    std::this_thread::yield();
  }
}

std::int64_t scheduler::count_frames() const noexcept {
  std::int64_t all = 0;
  for (const auto& p : places_) all += p->events.frames();
  return all;
}

void scheduler::settle(bool forget) {
  // All of them are of what has failed. Not where it is forgotten already, and others may have
  // begun something here since.
  if (forget && failure.is_there.load(std::memory_order_seq_cst))
    dead_frames_.store(count_frames(), std::memory_order_relaxed);
  failure.settle(forget);
  // Somebody has to fall asleep again to see that there is something to tell.
  idle_.wake_one();
}

}  // namespace strata::detail
