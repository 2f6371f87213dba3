// SPDX-License-Identifier: Apache-2.0
// What runs into the end of any stack.
#pragma once

namespace strata::test {

// Not a tail call, and nothing that a compiler could take out.
[[gnu::noinline]] inline int recurse_for_ever(volatile int* depth) {
  volatile char frame[256];
  frame[0] = static_cast<char>(*depth);
  *depth = *depth + 1;
  if (*depth < 0) return 0;  // never
  const int below = recurse_for_ever(depth);
  return below + frame[0];
}

}  // namespace strata::test
