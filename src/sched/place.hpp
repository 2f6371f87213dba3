// SPDX-License-Identifier: Apache-2.0
// A worker with everything that inlined code does not need to see. "Place" because the OS thread in
// it can change: its own thread sleeps while a thread from outside uses it.
#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

#include "context/stack.hpp"
#include "sched/accounts.hpp"
#include "strata/detail/worker.hpp"

namespace strata::detail {

class place : public worker {
 public:
  place(frame_depot& depot, scheduler& s, unsigned number);

  // Runs tasks until *leave is not 0. Called on the OS thread's own stack.
  void dispatch(const std::atomic<std::uint32_t>& leave, bool guest);

  // ---- stacks ----
  // On the worker's own stack: continues s; returns when s has ended or is suspended.
  void continue_stack(stack& s);
  // On a pooled stack: leaves it for the worker's own; `action(place, argument)` runs there.
  void leave_stack(void (*action)(place&, void*), void* argument) noexcept;
  // Ends the program when there is none left.
  stack* take_stack() noexcept;
  void give_stack(stack* s) noexcept;

  stack* current = nullptr;  // the pooled stack that runs here; null on the worker's own
  context native;            // the worker's own stack
  accounts time;
  std::vector<place*> victims;  // nearest first
  int cpu = -1;
  bool polls = false;  // looks for messages after every task
  std::uint32_t random = 1;

 private:
  stack* spare_ = nullptr;  // one is kept at hand: the next task is likely to want it
  void (*action_)(place&, void*) = nullptr;
  void* argument_ = nullptr;
};

inline place& this_place() noexcept { return static_cast<place&>(this_worker()); }

}  // namespace strata::detail
