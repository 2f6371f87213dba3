// SPDX-License-Identifier: Apache-2.0
#include "bench/common/openmp.hpp"

#include "bench/nqueens/kernel.hpp"

namespace {
std::uint64_t extend(unsigned n, unsigned row, const nqueens::board& b) {
  if (row == n) return 1;
  std::array<std::uint64_t, nqueens::n_max> found{};
  for (unsigned column = 0; column < n; ++column) {
    if (nqueens::safe(b, row, column)) {
#pragma omp task shared(found, b) firstprivate(n, row, column)
      found[column] = extend(n, row + 1, nqueens::with_queen(b, row, column));
    }
  }
#pragma omp taskwait
  std::uint64_t solutions = 0;
  for (unsigned column = 0; column < n; ++column) solutions += found[column];
  return solutions;
}
}  // namespace

int main(int argc, char** argv) {
  return bench::nqueens_main<bench::openmp_environment>(
      argc, argv, "openmp", [](unsigned n) { return extend(n, 0, nqueens::board{}); });
}
