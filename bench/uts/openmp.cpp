// SPDX-License-Identifier: Apache-2.0
#include "bench/common/openmp.hpp"

#include <vector>

#include "bench/uts/kernel.hpp"

namespace {
uts::tally visit(const uts::parameters& tree, const uts::node& n) {
  const unsigned children = uts::child_count(tree, n);
  uts::tally found = uts::tally_of(n, children);
  if (children == 0) return found;
  std::vector<uts::tally> below(children);
  for (unsigned i = 0; i < children; ++i) {
#pragma omp task shared(tree, n, below) firstprivate(i)
    below[i] = visit(tree, uts::child(n, i));
  }
#pragma omp taskwait
  for (const uts::tally& one : below) found += one;
  return found;
}
}  // namespace

int main(int argc, char** argv) {
  return bench::uts_main<bench::openmp_environment>(
      argc, argv, "openmp",
      [](const uts::parameters& tree) { return visit(tree, uts::root(tree)); });
}
