// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "apps/uts/tree.hpp"
#include "bench/common/measure.hpp"

namespace bench {

template <class Environment>
int uts_main(int argc, char** argv, const char* implementation,
             uts::tally (*compute)(const uts::parameters&)) {
  const arguments given(argc, argv);
  const std::string name = given.rest.empty() ? "T1" : given.rest[0];
  const uts::sample* tree = uts::find_sample(name);
  if (tree == nullptr) arguments::refuse("the parameter is a tree: " + uts::sample_names());
  Environment environment(given.workers);
  environment.run([&] { compute(uts::parameters{}); });
  uts::tally found{};
  const double seconds = seconds_of([&] { environment.run([&] { found = compute(tree->tree); }); });
  return print("uts", implementation, name, given.workers, seconds,
               static_cast<double>(found.nodes), found == tree->found);
}

}  // namespace bench
