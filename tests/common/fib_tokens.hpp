// SPDX-License-Identifier: Apache-2.0
// Figure 1 of the EARTH paper: the smallest program whose tokens fill any number of nodes.
#pragma once
#include "strata/fiber.hpp"

namespace strata::test {

struct fib_tokens : threaded {
  int n;
  global_ptr<long> result;
  slot_ptr done;
  long r1, r2;
  void start() {
    if (n < 2) {
      put_sync(n, result, done);
      terminate();
    } else {
      token<fib_tokens>(n - 1, to_global(&r1), to_sptr(READY));
      token<fib_tokens>(n - 2, to_global(&r2), to_sptr(READY));
    }
  }
  void ready() {
    put_sync(r1 + r2, result, done);
    terminate();
  }
  fiber<&fib_tokens::ready> READY{this, 2};
};

}  // namespace strata::test
