// SPDX-License-Identifier: Apache-2.0
// Asks a job for a Fibonacci number and keeps the answer.
#pragma once
#include "strata/fiber.hpp"
#include "tests/common/fib_tokens.hpp"

namespace strata::test {

struct answer {
  long value = -1;
  bool there = false;
};

struct ask_fib : threaded {
  int n;
  answer* where;
  long value;
  void start() { token<fib_tokens>(n, to_global(&value), to_sptr(DONE)); }
  void done() {
    *where = {value, true};
    terminate();
  }
  fiber<&ask_fib::done> DONE{this, 1};
};

}  // namespace strata::test
