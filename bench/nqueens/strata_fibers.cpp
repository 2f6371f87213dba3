// SPDX-License-Identifier: Apache-2.0
#include "apps/nqueens/fibers.hpp"
#include "bench/common/strata.hpp"
#include "bench/nqueens/kernel.hpp"

int main(int argc, char** argv) {
  return bench::nqueens_main<bench::strata_environment>(
      argc, argv, "strata_fibers", [](unsigned n) { return nqueens::fibers(n, nqueens::n_max); });
}
