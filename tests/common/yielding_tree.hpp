// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "strata/fork_join.hpp"
#include "strata/thread.hpp"

namespace strata::test {

// Forks in both halves, and leaves each of which lets others run and waits for nobody. Returns how
// many leaves there are: 1 << depth.
inline int yielding_tree(int depth) {
  if (depth == 0) {
    for (int i = 0; i < 4; ++i) this_thread::yield();
    return 1;
  }
  const auto [a, b] =
      fork2join([=] { return yielding_tree(depth - 1); }, [=] { return yielding_tree(depth - 1); });
  return a + b;
}

}  // namespace strata::test
