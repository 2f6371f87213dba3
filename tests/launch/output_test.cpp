// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/events/output.hpp"

#include <gtest/gtest.h>

namespace {

using strata::launcher::line_prefixer;

TEST(line_prefixer, whole_lines_only) {
  line_prefixer p("[1] ");
  EXPECT_EQ(p.add("ab"), "");
  EXPECT_EQ(p.add("c\nde"), "[1] abc\n");
  EXPECT_EQ(p.add("\n\nf\n"), "[1] de\n[1] \n[1] f\n");
  EXPECT_EQ(p.finish(), "");
  EXPECT_EQ(p.add("end"), "");
  EXPECT_EQ(p.finish(), "[1] end\n");
  EXPECT_EQ(p.finish(), "");
}

TEST(line_prefixer, an_endless_line_is_cut) {
  line_prefixer p("[1] ");
  const std::string half(strata::launcher::line_bytes_max / 2, 'x');
  EXPECT_EQ(p.add(half), "");
  EXPECT_EQ(p.add(half), "[1] " + half + half + "\n");
  EXPECT_EQ(p.add("y\n"), "[1] y\n");
}

}  // namespace
