// SPDX-License-Identifier: Apache-2.0
// A program that brings its own malloc, whose locks and lists nobody may interrupt.
#include <cstddef>

#include "../sched/support.hpp"
#include "sched/ticker.hpp"
#include "strata/thread.hpp"

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* malloc(std::size_t bytes) { return __libc_malloc(bytes); }
}

namespace strata::test {
namespace {

TEST(own_malloc, is_not_interrupted) {
  EXPECT_FALSE(detail::ticker::is_safe());
  options o = with_workers(1);
  o.preempt_us = 100;
  runtime rt(o);
  rt.run([] {
    bool over = false;
    thread computes(thread_attributes{.preemptible = true}, [&] {
      volatile unsigned long sum = 0;
      for (unsigned long i = 0; i < 50'000'000; ++i) sum = sum + i;
    });
    thread waits([&] { over = true; });
    computes.join();
    waits.join();
    EXPECT_TRUE(over);
  });
  EXPECT_EQ(rt.stats().total().preemptions, 0U);
}

}  // namespace
}  // namespace strata::test
