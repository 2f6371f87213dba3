// SPDX-License-Identifier: Apache-2.0
// Every application, in every style, on 1, 2 and 4 workers, must find the published result.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

#include "run_program.hpp"

namespace {

using apps_test::outcome;
using apps_test::run_line;
using nlohmann::json;

constexpr bool small = APPS_SMALL != 0;

class every_style : public testing::TestWithParam<std::tuple<const char*, int>> {
 protected:
  json result_of(const std::string& line) {
    const auto [style, workers] = GetParam();
    const outcome o = run_line(line + " --json --style " + style + " --strata-workers " +
                               std::to_string(workers));
    EXPECT_EQ(o.exit_code, 0) << line << "\n" << o.err;
    EXPECT_EQ(o.err, "") << line;
    const json object = json::parse(o.last_line(), nullptr, false);
    if (object.is_discarded()) {
      ADD_FAILURE() << line << ": not JSON: " << o.last_line();
      return json::object();
    }
    EXPECT_EQ(object.at("ok"), true) << line;
    EXPECT_EQ(object.at("style"), style);
    EXPECT_EQ(object.at("workers"), std::string(style) == "serial" ? 1 : workers);
    return object.at("result");
  }
};

TEST_P(every_style, fib) {
  EXPECT_EQ(result_of("fib 0").at("value"), 0);
  EXPECT_EQ(result_of("fib 1").at("value"), 1);
  EXPECT_EQ(result_of("fib 2").at("value"), 1);
  EXPECT_EQ(result_of("fib 10").at("value"), 55);
  EXPECT_EQ(result_of("fib 20").at("value"), 6765);
  if (!small) {
    EXPECT_EQ(result_of("fib 30").at("value"), 832040);
  }
}

TEST_P(every_style, nqueens) {
  constexpr int known[] = {0, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200};
  for (int n = 1; n <= (small ? 8 : 12); ++n) {
    EXPECT_EQ(result_of("nqueens " + std::to_string(n)).at("solutions"), known[n]) << n;
  }
}

TEST_P(every_style, nqueens_throttled) {
  for (const char* depth : {"0", "1", "3", "27"}) {
    EXPECT_EQ(result_of(std::string("nqueens 8 --throttle ") + depth).at("solutions"), 92) << depth;
  }
}

// Every type and shape. The counts come from a second program that shares nothing with this one.
TEST_P(every_style, uts_small_trees) {
  struct small_tree {
    const char* flags;
    int nodes, leaves, depth;
  };
  for (const small_tree& tree : {small_tree{"", 1732, 1050, 6},
                                 {"-t 1 -a 3 -d 5 -b 4 -r 19", 3987, 3232, 5},
                                 {"-t 1 -a 2 -d 4 -b 3 -r 7", 2330, 1321, 21},
                                 {"-t 1 -a 1 -d 6 -b 4 -r 1", 1055, 549, 16},
                                 {"-t 0 -b 20 -q 0.12 -m 8 -r 42", 453, 398, 15},
                                 {"-t 2 -a 0 -d 8 -b 6 -r 1 -q 0.234375 -m 4", 15914, 11966, 73},
                                 {"-t 3 -d 5 -b 3 -r 1", 364, 243, 5},
                                 {"-b 0 -r 5", 1, 1, 0}}) {
    const json found = result_of(std::string("uts ") + tree.flags);
    EXPECT_EQ(found.at("tree_nodes"), tree.nodes) << tree.flags;
    EXPECT_EQ(found.at("leaves"), tree.leaves) << tree.flags;
    EXPECT_EQ(found.at("depth"), tree.depth) << tree.flags;
  }
}

// Deeper than any stack: chains of only children, and trees that go on below last children.
TEST_P(every_style, uts_deep_trees) {
  const int deep = small ? 20'000 : 300'000;
  const json chain = result_of("uts -t 3 -b 1 -d " + std::to_string(deep));
  EXPECT_EQ(chain.at("tree_nodes"), deep + 1);
  EXPECT_EQ(chain.at("leaves"), 1);
  EXPECT_EQ(chain.at("depth"), deep);
  const json random = result_of("uts -t 0 -b 1 -m 1 -q 0.9999 -r 3");
  EXPECT_EQ(random.at("leaves"), 1);
  EXPECT_EQ(random.at("tree_nodes").get<int>(), random.at("depth").get<int>() + 1);
}

TEST_P(every_style, uts_samples) {
  if (small) GTEST_SKIP() << "four million nodes take too long in this build";
  const json t1 = result_of("uts T1");
  EXPECT_EQ(t1.at("tree_nodes"), 4130071);
  EXPECT_EQ(t1.at("leaves"), 3305118);
  EXPECT_EQ(t1.at("depth"), 10);
  const json t3 = result_of("uts -t 0 -b 2000 -q 0.124875 -m 8 -r 42");
  EXPECT_EQ(t3.at("tree_nodes"), 4112897);
  EXPECT_EQ(t3.at("leaves"), 3599034);
  EXPECT_EQ(t3.at("depth"), 1572);
  const json t5 = result_of("uts --tree T5");
  EXPECT_EQ(t5.at("tree_nodes"), 4147582);
  EXPECT_EQ(t5.at("leaves"), 2181318);
  EXPECT_EQ(t5.at("depth"), 20);
}

std::string name_of(const testing::TestParamInfo<every_style::ParamType>& info) {
  std::string style = std::get<0>(info.param);
  for (char& c : style) c = c == '-' ? '_' : c;
  return style + "_" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(serial, every_style,
                         testing::Combine(testing::Values("serial"), testing::Values(1)), name_of);
INSTANTIATE_TEST_SUITE_P(parallel, every_style,
                         testing::Combine(testing::Values("fork-join", "fibers"),
                                          testing::Values(1, 2, 4)),
                         name_of);

}  // namespace
