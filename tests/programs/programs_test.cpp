// SPDX-License-Identifier: Apache-2.0
// Programs as users write them, alone and as jobs: each says itself whether its result is right.
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "command.hpp"

namespace {

struct program {
  const char* name;
  const char* path;
  friend void PrintTo(const program& p, std::ostream* out) { *out << p.name; }
};

class programs : public testing::TestWithParam<program> {};
INSTANTIATE_TEST_SUITE_P(all, programs,
                         testing::Values(program{"graph_search", STRATA_GRAPH_SEARCH},
                                         program{"n_body", STRATA_N_BODY},
                                         program{"salesman", STRATA_SALESMAN},
                                         program{"sample_sort", STRATA_SAMPLE_SORT}),
                         [](const auto& p) { return std::string(p.param.name); });

TEST_P(programs, find_what_serial_ones_find_on_any_number_of_nodes) {
  launch_test::expect_ok({GetParam().path}, {.other = true});
  for (const char* const nodes : {"1", "2", "3"}) {
    for (const char* const workers : {"1", "2"}) {
      SCOPED_TRACE(std::string(nodes) + " nodes, workers " + workers);
      launch_test::expect_ok({"run", "-n", nodes, "--workers", workers, GetParam().path, "%m"});
    }
  }
}

}  // namespace
