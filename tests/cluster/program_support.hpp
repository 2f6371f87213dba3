// SPDX-License-Identifier: Apache-2.0
// What the parts of the program of whole jobs share.
#pragma once
#include <cstdint>

#include "strata/fiber.hpp"
#include "tests/common/fib_tokens.hpp"

namespace strata::test {

inline long fib_by_tokens(int n) {
  long value = 0;
  completion done;
  token<fib_tokens>(n, to_global(&value), done.sptr());
  done.wait();
  return value;
}

// A token that tells when it has run.
struct lone : threaded {
  global_ptr<std::uint64_t> ran;
  slot_ptr done;
  std::uint64_t number;
  void start() {
    put_sync(number, ran, done);
    terminate();
  }
};

// Long enough that others come and help themselves.
inline node_id_t slow_here(int) {
  volatile int busy = 0;
  for (int i = 0; i < 300'000; ++i) busy = busy + 1;
  return node_id();
}

}  // namespace strata::test
