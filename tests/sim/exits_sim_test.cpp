// SPDX-License-Identifier: Apache-2.0
// Threads that leave by pthread_exit() on simulated nodes: they alone end, and who awaits them goes
// on. Within one process: tests/messages/on_node_test.cpp.
#include <cereal/types/string.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "program_job.hpp"
#include "strata/group.hpp"
#include "strata/pthread.h"
#include "strata/remote_thread.hpp"
#include "strata/serialize.hpp"

namespace strata::test {
namespace {

using net::node_id;

unsigned exits = 0;  // of all nodes

void count_and_exit() {
  ++exits;
  strata_pthread_exit(nullptr);
}
// Its result would be a number, and an object.
int exit_with_a_number(int n) {
  if (n != 0) count_and_exit();
  return n;
}
std::string exit_with_a_text(const std::string& text) {
  if (!text.empty()) count_and_exit();
  return text;
}
void call_who_exits(node_id there) { call<count_and_exit>(on_node{there}); }

// On the first of three nodes f goes on to its end, though so many leave meanwhile.
template <class F>
void expect_to_go_on(unsigned exits_expected, F f) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 3});
    exits = 0;
    bool has_gone_on = false;
    p.begin(0, [&] {
      f();
      has_gone_on = true;
    });
    p.run();
    EXPECT_TRUE(has_gone_on);
    EXPECT_EQ(exits, exits_expected);
  }
}

TEST(simulated_exits, end_a_thread_of_another_node_and_not_who_awaits_it) {
  expect_to_go_on(5, [] {
    remote_thread(1, call<count_and_exit>()).join();
    remote_thread(1, call<exit_with_a_number>(1)).join();
    remote_thread(2, call<exit_with_a_text>(std::string("text"))).join();
    remote_thread timed(2, call<count_and_exit>());
    EXPECT_TRUE(timed.wait_for(std::chrono::hours(1)));
    timed.join();
    { const remote_thread left(1, call<count_and_exit>()); }
    EXPECT_EQ(exits, 5U);
  });
}

// A call is no thread: who waits for its value is told that there is none, and so is who joins a
// thread of which such a call has left.
TEST(simulated_exits, are_errors_of_calls) {
  expect_to_go_on(2, [] {
    const auto expect_told = [](std::vector<std::uint16_t> trace, const auto& f) {
      try {
        f();
        ADD_FAILURE() << "nothing was thrown";
      } catch (const remote_error& e) {
        EXPECT_EQ(e.trace(), trace);
      }
    };
    expect_told({1}, [] { (void)call<exit_with_a_number>(on_node{1}, 1); });
    expect_told({2, 1}, [] { remote_thread(1, call<call_who_exits>(node_id{2})).join(); });
  });
}

TEST(simulated_exits, end_a_member_and_not_its_group) {
  expect_to_go_on(3, [] {
    detail::run_group_on(std::vector<node_id>{0, 1, 2}, 2, [](group& all) {
      EXPECT_EQ(all.all_reduce(1U, std::plus<>()), 6U);
      if (all.rank() % 2 == 0) count_and_exit();
    });
    EXPECT_EQ(exits, 3U);
  });
}

}  // namespace
}  // namespace strata::test
