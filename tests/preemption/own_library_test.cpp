// SPDX-License-Identifier: Apache-2.0
// A program that has the C++ library linked in, whose locks nobody may be interrupted with.
#include <locale>

#include "../sched/support.hpp"
#include "sched/ticker.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

struct own_numbers : std::numpunct<char> {};

TEST(own_library, is_not_interrupted) {
  ASSERT_FALSE(detail::ticker::is_safe());  // else they may hang
  // From now on whoever asks for the locale takes a lock.
  const std::locale before = std::locale::global({std::locale::classic(), new own_numbers});
  options o = with_workers(1);
  o.preempt_us = 100;
  runtime rt(o);
  rt.run([] {
    const auto ask = [] {
      for (int i = 0; i < 1'000'000; ++i) const std::locale ours;
    };
    thread one(thread_attributes{.preemptible = true}, ask);
    thread other(thread_attributes{.preemptible = true}, ask);
    one.join();
    other.join();
  });
  EXPECT_EQ(rt.stats().total().preemptions, 0U);
  std::locale::global(before);
}

}  // namespace
}  // namespace strata::test
