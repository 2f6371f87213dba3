// SPDX-License-Identifier: Apache-2.0
// What a user writes on the first day. It knows nothing but the installed headers.
#include <cstdio>
#include <strata/error.hpp>
#include <strata/fork_join.hpp>
#include <strata/runtime.hpp>

static long fib(long n) {
  if (n < 2) return n;
  auto [a, b] = strata::fork2join([n] { return fib(n - 1); }, [n] { return fib(n - 2); });
  return a + b;
}

int main(int argc, char** argv) {
  try {
    strata::runtime runtime(strata::options::parse(argc, argv));
    const long value = runtime.run([] { return fib(20); });
    std::printf("fib(20) = %ld on %u workers\n", value, runtime.workers());
    return value == 6765 ? 0 : 1;
  } catch (const strata::user_error& problem) {
    std::fprintf(stderr, "consumer: %s\n", problem.what());
    return 2;
  }
}
