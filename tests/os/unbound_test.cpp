// SPDX-License-Identifier: Apache-2.0
#include "os/unbound.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "os/topology.hpp"

namespace {

using strata::os::allowed_cpus;

void be_bound(int cpu) {
  ASSERT_TRUE(strata::os::bind_current_thread(cpu));
  ASSERT_EQ(allowed_cpus(), std::vector<int>{cpu});
}

TEST(unbound, threads_of_a_bound_one_begin_with_what_it_had_before) {
  const std::vector<int> before = allowed_cpus();
  std::thread([&] {
    be_bound(before.back());
    {
      const strata::os::unbound here;
      EXPECT_EQ(allowed_cpus(), before);
      std::thread([&] { EXPECT_EQ(allowed_cpus(), before); }).join();
    }
    EXPECT_EQ(allowed_cpus(), std::vector<int>{before.back()});
    be_bound(before.front());  // what counts is what it had at first
    const strata::os::unbound here;
    EXPECT_EQ(allowed_cpus(), before);
  }).join();
}

TEST(unbound, who_has_not_been_bound_or_is_its_own_master_again_stays_as_it_is) {
  const std::vector<int> before = allowed_cpus();
  std::thread([&] {
    EXPECT_EQ(strata::os::cpus_before_binding(), nullptr);
    be_bound(before.back());
    EXPECT_NE(strata::os::cpus_before_binding(), nullptr);
    strata::os::forget_binding();
    const strata::os::unbound here;
    EXPECT_EQ(allowed_cpus(), std::vector<int>{before.back()});
  }).join();
}

}  // namespace
