// SPDX-License-Identifier: Apache-2.0
#include "bench/common/tbb.hpp"

#include <tbb/task_group.h>

#include "bench/fib/kernel.hpp"

namespace {
std::uint64_t tasks(unsigned n) {
  if (n < 2) return n;
  std::uint64_t a = 0;
  tbb::task_group group;
  group.run([&a, n] { a = tasks(n - 1); });
  const std::uint64_t b = tasks(n - 2);
  group.wait();
  return a + b;
}
}  // namespace

int main(int argc, char** argv) {
  return bench::fib_main<bench::tbb_environment>(argc, argv, "tbb", tasks);
}
