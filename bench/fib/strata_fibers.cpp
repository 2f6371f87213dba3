// SPDX-License-Identifier: Apache-2.0
#include "apps/fib/fibers.hpp"
#include "bench/common/strata.hpp"
#include "bench/fib/kernel.hpp"

int main(int argc, char** argv) {
  return bench::fib_main<bench::strata_environment>(argc, argv, "strata_fibers", fib::fibers);
}
