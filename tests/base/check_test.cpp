// SPDX-License-Identifier: Apache-2.0
#include "strata/detail/check.hpp"

#include <gtest/gtest.h>

#include <string>

#include "strata/error.hpp"
#include "strata/version.hpp"

namespace {

enum class color { red = 3 };

TEST(check_death, prints_place_expression_and_operands) {
  const unsigned long top = 7;
  const int bottom = -3;
  EXPECT_DEATH(STRATA_CHECK(bottom >= 0, top, bottom, "why", color::red, 1.5, true, 'x', nullptr),
               "check_test\\.cpp:[0-9]+: STRATA_CHECK\\(bottom >= 0\\) failed\n"
               "  top, bottom, .* = 7, -3, why, 3, 1\\.5, true, x, null");
}

TEST(check_death, works_without_operands) {
  EXPECT_DEATH(STRATA_CHECK(1 + 1 == 3), "STRATA_CHECK\\(1 \\+ 1 == 3\\) failed\n$");
}

TEST(check_death, a_long_operand_is_cut) {
  const std::string text(5000, 'a');
  EXPECT_DEATH(STRATA_CHECK(text.empty(), text), "text = a+\n$");
}

TEST(check_death, a_pointer_is_printed_as_address) {
  const int* pointer = reinterpret_cast<const int*>(0x1234);
  EXPECT_DEATH(STRATA_CHECK(pointer == nullptr, pointer), "pointer = 0x1234");
}

TEST(check, evaluates_the_condition_once_and_the_operands_never) {
  int conditions = 0;
  int operands = 0;
  STRATA_CHECK(++conditions == 1, ++operands);
  EXPECT_EQ(conditions, 1);
  EXPECT_EQ(operands, 0);
}

#if defined(STRATA_DEBUG_CHECKS)
TEST(dcheck_death, aborts_in_debug_builds) { EXPECT_DEATH(STRATA_DCHECK(false, 42), "42"); }
#else
TEST(dcheck, evaluates_nothing_in_release_builds) {
  int conditions = 0;
  STRATA_DCHECK(++conditions == 1, conditions);
  EXPECT_EQ(conditions, 0);
}
#endif

TEST(error, kinds_are_errors) {
  EXPECT_THROW(throw strata::user_error("bad"), strata::error);
  EXPECT_THROW(throw strata::misuse_error("bad"), std::runtime_error);
}

TEST(version, headers_and_library_agree) {
  EXPECT_STREQ(strata::version(), STRATA_VERSION_STRING);
  EXPECT_EQ(std::to_string(STRATA_VERSION_MAJOR) + "." + std::to_string(STRATA_VERSION_MINOR) +
                "." + std::to_string(STRATA_VERSION_PATCH),
            STRATA_VERSION_STRING);
}

}  // namespace
