// SPDX-License-Identifier: Apache-2.0
#include "apps/fib/serial.hpp"
#include "bench/idle/kernel.hpp"

int main(int argc, char** argv) {
  const bench::arguments given(argc, argv);
  const int threads = static_cast<int>(given.workers);
  return bench::idle_main("openmp", given, [threads] {
#pragma omp parallel for num_threads(threads)
    for (int i = 0; i < 100; ++i) bench::opaque(fib::serial(20));
  });
}
