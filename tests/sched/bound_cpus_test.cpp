// SPDX-License-Identifier: Apache-2.0
// Runtimes of one process divide its CPUs.
#include "sched/bound_cpus.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../common/denied_calls.hpp"
#include "os/topology.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

using detail::bound_cpus;
using cpu_list = std::vector<int>;

// None that any machine has, in an order as topology::place() may give it.
const cpu_list four{9002, 9000, 9003, 9001};

TEST(bound, cpus_are_nobodys_before) {
  const bound_cpus one(four, 1);
  EXPECT_EQ(one.cpus(), cpu_list{9002});
  std::optional<bound_cpus> two(std::in_place, four, 2);
  EXPECT_EQ(two->cpus(), (cpu_list{9000, 9003}));
  // One is left for two workers.
  EXPECT_EQ(bound_cpus(four, 2).cpus(), cpu_list{});
  const bound_cpus last(four, 1);
  EXPECT_EQ(last.cpus(), cpu_list{9001});
  EXPECT_EQ(bound_cpus(four, 1).cpus(), cpu_list{});
  two.reset();
  EXPECT_EQ(bound_cpus(four, 1).cpus(), cpu_list{9000});
  EXPECT_EQ(bound_cpus(four, 2).cpus(), (cpu_list{9000, 9003}));
}

TEST(bound, cpus_are_shared_where_all_are) {
  const bound_cpus all(four, 4);
  EXPECT_EQ(all.cpus(), four);
  EXPECT_EQ(bound_cpus(four, 3).cpus(), cpu_list{});
  const bound_cpus again(four, 4);
  EXPECT_EQ(again.cpus(), four);
}

TEST(bound, cpus_move_with_their_owner) {
  bound_cpus of_runtime;
  EXPECT_EQ(of_runtime.cpus(), cpu_list{});
  of_runtime = bound_cpus(four, 3);
  EXPECT_EQ(of_runtime.cpus().size(), 3U);
  EXPECT_EQ(bound_cpus(four, 1).cpus(), cpu_list{9001});
}

cpu_list cpus_of_worker(runtime& rt) {
  std::promise<cpu_list> said;
  rt.submit([&] { said.set_value(os::allowed_cpus()); });
  return said.get_future().get();
}

TEST(runtimes, of_one_worker_each_have_a_cpu_of_their_own) {
  const auto all = static_cast<unsigned>(os::allowed_cpus().size());
  if (all < 2) GTEST_SKIP() << "needs two CPUs";
  std::vector<std::unique_ptr<runtime>> small;
  std::vector<unsigned> times(os::allowed_cpus().back() + 1U);
  for (unsigned i = 0; i < all; ++i) {
    small.push_back(std::make_unique<runtime>(with_workers(1)));
    const cpu_list here = cpus_of_worker(*small.back());
    ASSERT_EQ(here.size(), 1U);
    EXPECT_EQ(++times[static_cast<std::size_t>(here[0])], 1U);
    EXPECT_EQ(small.back()->describe(), "1 worker on CPUs " + std::to_string(here[0]) + ", bound");
  }
  {
    runtime one_too_many(with_workers(1));
    EXPECT_NE(one_too_many.describe().find("not bound"), std::string::npos);
    EXPECT_EQ(cpus_of_worker(one_too_many).size(), all);
  }
  // As many workers as there are CPUs share evenly.
  EXPECT_EQ(runtime(with_workers(all)).describe().find("not bound"), std::string::npos);
  const std::string first = small.front()->describe();
  small.erase(small.begin());
  EXPECT_EQ(runtime(with_workers(1)).describe(), first);
}

// As the filters of some containers do.
TEST(runtimes, say_that_they_are_not_bound_where_the_system_refuses_it) {
  bool denied = false;
  std::string said;
  std::thread([&] {
    denied = deny_calls({SYS_sched_setaffinity});
    said = runtime(with_workers(1)).describe();
  }).join();
  if (!denied) GTEST_SKIP() << "no filters of system calls here";
  EXPECT_NE(said.find(", not bound, which the system refuses"), std::string::npos) << said;
}

}  // namespace
}  // namespace strata::test
