// SPDX-License-Identifier: Apache-2.0
#include "apps/nqueens/fork_join.hpp"
#include "bench/common/strata.hpp"
#include "bench/nqueens/kernel.hpp"

int main(int argc, char** argv) {
  return bench::nqueens_main<bench::strata_environment>(
      argc, argv, "strata_fork_join",
      [](unsigned n) { return nqueens::fork_join_search(n, nqueens::n_max)(); });
}
