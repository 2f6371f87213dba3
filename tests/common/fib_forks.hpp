// SPDX-License-Identifier: Apache-2.0
// The smallest program whose forks fill any number of workers.
#pragma once
#include "strata/fork_join.hpp"

namespace strata::test {

inline long fib(int n) {
  if (n < 2) return n;
  auto [a, b] = fork2join([=] { return fib(n - 1); }, [=] { return fib(n - 2); });
  return a + b;
}

}  // namespace strata::test
