// SPDX-License-Identifier: Apache-2.0
#include "program_calls.hpp"

#include <sys/personality.h>

#include <cstdint>
#include <cstdio>
#include <fstream>

#include "program_support.hpp"
#include "strata/call.hpp"
#include "strata/fork_join.hpp"
#include "strata/remote_thread.hpp"
#include "tests/common/require.hpp"

namespace {

using namespace strata;
using test::require;
using test::slow_here;

long fib_by_calls(int n) {
  if (n < 2) return n;
  const auto [a, b] = fork2join([n] { return fib_by_calls(n - 1); }, call<fib_by_calls>(n - 2));
  return a + b;
}

// On the node that makes the call.
std::uintptr_t place_of_code(int) { return reinterpret_cast<std::uintptr_t>(&place_of_code); }

bool is_randomised() {
  int setting = 0;
  std::ifstream("/proc/sys/kernel/randomize_va_space") >> setting;
  const int now = ::personality(0xffffffffU);  // asks, changes nothing
  return setting != 0 && now >= 0 && (now & ADDR_NO_RANDOMIZE) == 0;
}

}  // namespace

void calls(runtime& rt) {
  require(rt.run([] { return fib_by_calls(27); }) == 196418, "fib(27)");
  // Until one has really been made elsewhere.
  bool travelled = false;
  for (int i = 0; i < 10'000 && !travelled; ++i) {
    rt.run([&] {
      const auto [a, b] = fork2join([] { return slow_here(0); }, call<slow_here>(1));
      travelled |= b != a;
    });
  }
  require(travelled, "a call was made on another node");
}

// Calls find their code on nodes where it lies elsewhere.
void code_elsewhere(runtime& rt) {
  const auto there = rt.run([] { return call<place_of_code>(on_node{1}, 0); });
  if (is_randomised()) {
    require(there != place_of_code(0), "node 1 has its code at another address");
  } else {
    std::puts("addresses are fixed here");
  }
}
