// SPDX-License-Identifier: Apache-2.0
// What a program says to the test that has started it, and waits for that.
#pragma once
#include <cstdio>

namespace strata::test {

inline void say(const char* what) {
  std::puts(what);
  std::fflush(stdout);
}

}  // namespace strata::test
