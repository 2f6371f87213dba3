// SPDX-License-Identifier: Apache-2.0
// What a program says to the test that has started it, and waits for that.
#pragma once
#include <cstdio>
#include <string>

namespace strata::test {

inline void say(const char* what) {
  std::puts(what);
  std::fflush(stdout);
}
inline void say(const std::string& what) { say(what.c_str()); }

}  // namespace strata::test
