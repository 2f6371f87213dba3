// SPDX-License-Identifier: Apache-2.0
#include "bench/common/tbb.hpp"

#include <tbb/parallel_for.h>

#include "apps/fib/serial.hpp"
#include "bench/idle/kernel.hpp"

int main(int argc, char** argv) {
  const bench::arguments given(argc, argv);
  bench::tbb_environment environment(given.workers);
  return bench::idle_main("tbb", given, [&] {
    environment.run([] { tbb::parallel_for(0, 100, [](int) { bench::opaque(fib::serial(20)); }); });
  });
}
