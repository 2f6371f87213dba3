// SPDX-License-Identifier: Apache-2.0
#include "apps/uts/fork_join.hpp"
#include "bench/common/strata.hpp"
#include "bench/uts/kernel.hpp"

int main(int argc, char** argv) {
  return bench::uts_main<bench::strata_environment>(
      argc, argv, "strata_fork_join",
      [](const uts::parameters& tree) { return uts::fork_join(tree); });
}
