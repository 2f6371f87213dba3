// SPDX-License-Identifier: Apache-2.0
#include "apps/uts/fibers.hpp"
#include "bench/common/strata.hpp"
#include "bench/uts/kernel.hpp"

int main(int argc, char** argv) {
  return bench::uts_main<bench::strata_environment>(argc, argv, "strata_fibers", uts::fibers);
}
