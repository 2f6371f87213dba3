// SPDX-License-Identifier: Apache-2.0
#include "bench/common/tbb.hpp"

#include <tbb/task_group.h>

#include "bench/nqueens/kernel.hpp"

namespace {
std::uint64_t extend(unsigned n, unsigned row, const nqueens::board& b) {
  if (row == n) return 1;
  std::array<std::uint64_t, nqueens::n_max> found{};
  tbb::task_group group;
  for (unsigned column = 0; column < n; ++column) {
    if (nqueens::safe(b, row, column)) {
      group.run([&, row, column] {
        found[column] = extend(n, row + 1, nqueens::with_queen(b, row, column));
      });
    }
  }
  group.wait();
  std::uint64_t solutions = 0;
  for (unsigned column = 0; column < n; ++column) solutions += found[column];
  return solutions;
}
}  // namespace

int main(int argc, char** argv) {
  return bench::nqueens_main<bench::tbb_environment>(
      argc, argv, "tbb", [](unsigned n) { return extend(n, 0, nqueens::board{}); });
}
