// SPDX-License-Identifier: Apache-2.0
#include "base/spelling.hpp"

#include <gtest/gtest.h>

#include "strata/detail/task.hpp"

namespace {

using strata::plain_name;

struct some_task {};

TEST(plain_name, is_the_parameter_of_a_spelled_template) {
  EXPECT_EQ(plain_name("const char* f() [with T = main()::<lambda()>]"), "main()::<lambda()>");
  EXPECT_EQ(plain_name("const char *f() [T = a::b<int[3]>]"), "a::b<int[3]>");
  const std::string_view here = plain_name(strata::detail::type_name<some_task>());
  EXPECT_TRUE(here.ends_with("some_task")) << here;
  EXPECT_EQ(here.find("type_name"), std::string_view::npos) << here;
}

TEST(plain_name, leaves_everything_else_alone) {
  for (const char* const text : {"completion", "", "[", " = ]", "f() [with", "f() [with T = x"})
    EXPECT_EQ(plain_name(text), text);
}

}  // namespace
