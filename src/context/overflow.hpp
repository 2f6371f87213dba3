// SPDX-License-Identifier: Apache-2.0
// A stack overflow ends the program with the name of the task instead of a bare segmentation fault.
#pragma once
#include <cstddef>
#include <memory>

namespace strata::detail {

class stack_pool;

// Begins and ends watching the guard pages of `pool`. The first call installs a SIGSEGV handler;
// faults that are not ours go to whatever was installed before.
void watch_for_overflow(const stack_pool& pool);
void forget_overflow(const stack_pool& pool);

// The handler needs a stack of its own, on every OS thread whose tasks can overflow. One object on
// each such thread.
class signal_stack {
 public:
  signal_stack();
  ~signal_stack();
  signal_stack(const signal_stack&) = delete;
  signal_stack& operator=(const signal_stack&) = delete;

 private:
  std::unique_ptr<std::byte[]> memory_;  // null: the thread had one already
};

}  // namespace strata::detail
