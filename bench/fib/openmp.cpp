// SPDX-License-Identifier: Apache-2.0
#include "bench/common/openmp.hpp"

#include "bench/fib/kernel.hpp"

namespace {
std::uint64_t tasks(unsigned n) {
  if (n < 2) return n;
  std::uint64_t a = 0;
#pragma omp task shared(a)
  a = tasks(n - 1);
  const std::uint64_t b = tasks(n - 2);
#pragma omp taskwait
  return a + b;
}
}  // namespace

int main(int argc, char** argv) {
  return bench::fib_main<bench::openmp_environment>(argc, argv, "openmp", tasks);
}
