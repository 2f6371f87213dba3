// SPDX-License-Identifier: Apache-2.0
#include "program_calls.hpp"

#include "program_support.hpp"
#include "strata/call.hpp"
#include "strata/fork_join.hpp"
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
