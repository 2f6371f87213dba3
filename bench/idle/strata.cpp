// SPDX-License-Identifier: Apache-2.0
#include "bench/common/strata.hpp"

#include "apps/fib/fork_join.hpp"
#include "bench/idle/kernel.hpp"

int main(int argc, char** argv) {
  const bench::arguments given(argc, argv);
  bench::strata_environment environment(given.workers);
  return bench::idle_main("strata", given, [&] { environment.run([] { fib::fork_join(30); }); });
}
