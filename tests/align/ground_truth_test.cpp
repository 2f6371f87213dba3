// SPDX-License-Identifier: Apache-2.0
// alignment.csv (columns and generator are described in its first lines' names and in
// reference.hpp), in every style and kernel set.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <strata/runtime.hpp>

#include "apps/align/comparison.hpp"
#include "tests/align/reference.hpp"

namespace align_test {
namespace {

using namespace align;

struct row {
  std::string text, a, b;
  bool global = false;
  scoring score;
  std::int64_t expected_score = 0, end_i = -1, end_j = -1, count = -1;
};

std::vector<row> read_rows() {
  std::ifstream file(STRATA_ALIGN_FACTS);
  std::vector<row> out;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::vector<std::string> field;
    std::istringstream parts(line);
    for (std::string part; std::getline(parts, part, ',');) field.push_back(part);
    field.resize(13);
    row r;
    r.text = line;
    const auto length = static_cast<std::size_t>(std::stoul(field[3]));
    r.a = field[0] == "rand" ? seeded_letters(1, length) : field[1];
    r.b = field[0] == "rand" ? seeded_letters(2, length) : field[2];
    r.global = field[4] == "NW";
    r.score.match = std::stoi(field[5]);
    r.score.mismatch = std::stoi(field[6]);
    r.score.open = -std::stoi(field[7]);
    r.score.extend = field[8].empty() ? r.score.open : -std::stoi(field[8]);
    r.expected_score = std::stoll(field[9]);
    if (!field[10].empty()) {
      r.end_i = std::stoll(field[10]);
      r.end_j = std::stoll(field[11]);
      r.count = std::stoll(field[12]);
    }
    out.push_back(r);
  }
  return out;
}

struct variant {
  apps::style how;
  const char* set;
};

class ground_truth : public testing::TestWithParam<variant> {};

TEST_P(ground_truth, all_rows) {
  driver d;
  d.how = GetParam().how;
  d.kernels = find_kernels(GetParam().set);
  if (!d.kernels) GTEST_SKIP() << "this processor cannot run " << GetParam().set;
  d.workers = 2;
  strata::options settings;
  settings.workers = d.workers;
  strata::runtime runtime(settings);
  const std::vector<row> rows = read_rows();
  ASSERT_GE(rows.size(), 19u);
  for (const row& r : rows) {
    if (r.a.size() > STRATA_ALIGN_LONGEST) continue;
    SCOPED_TRACE(r.text);
    const sequence a = make_sequence(r.a), b = make_sequence(r.b);
    comparison_options o;
    o.score = r.score;
    o.global = r.global;
    o.hits = 1;
    const auto work = [&] { return compare(a, b, o, d, false); };
    const comparison c = d.how == apps::style::serial ? work() : runtime.run(work);
    EXPECT_TRUE(c.ok);
    EXPECT_EQ(c.score, r.expected_score);
    if (r.end_i < 0) continue;
    EXPECT_EQ(c.end_i, r.end_i);
    EXPECT_EQ(c.end_j, r.end_j);
    EXPECT_EQ(c.cells_with_maximum, r.count);
  }
}

INSTANTIATE_TEST_SUITE_P(variants, ground_truth,
                         testing::Values(variant{apps::style::serial, "baseline"},
                                         variant{apps::style::serial, "avx2"},
                                         variant{apps::style::serial, "avx512"},
                                         variant{apps::style::fork_join, nullptr},
                                         variant{apps::style::fibers, nullptr},
                                         variant{apps::style::fork_join, "baseline"},
                                         variant{apps::style::fibers, "baseline"}),
                         [](const auto& instance) {
                           std::string name(apps::name_of(instance.param.how));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + "_" + (instance.param.set ? instance.param.set : "widest");
                         });

}  // namespace
}  // namespace align_test
