// SPDX-License-Identifier: Apache-2.0
#include "os/own_thread.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <latch>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "strata/detail/cpu.hpp"

namespace {

// The kernel counts a thread a little longer than who has joined it.
void await_others(bool wanted) {
  while (strata::os::has_other_threads() != wanted) std::this_thread::yield();
}

TEST(own_thread, is_named_and_is_none_of_the_program_s) {
  std::latch began(2);
  std::latch seen(2);
  std::thread ours([&] {
    const strata::os::own_thread here("strata-test");
    std::array<char, 16> name{};
    EXPECT_EQ(pthread_getname_np(pthread_self(), name.data(), name.size()), 0);
    EXPECT_EQ(std::string_view(name.data()), "strata-test");
    began.arrive_and_wait();
    seen.arrive_and_wait();
  });
  began.arrive_and_wait();
  await_others(false);
  seen.arrive_and_wait();
  ours.join();
  await_others(false);
}

TEST(own_thread, one_that_goes_on_in_the_child_of_its_fork_is_counted_once) {
  int status = -1;
  std::thread ours([&] {
    std::optional<strata::os::own_thread> here(std::in_place, "strata-test");
    const pid_t child = fork();
    if (child == 0) {
      strata::os::forget_own_threads();
      here.reset();
      _exit(strata::os::has_other_threads() ? 1 : 0);
    }
    EXPECT_EQ(waitpid(child, &status, 0), child);
  });
  ours.join();
  EXPECT_EQ(status, 0);
}

#if !defined(STRATA_TSAN)
TEST(own_thread, others_are_seen_until_they_end) {
  std::latch seen(2);
  std::thread other([&] { seen.arrive_and_wait(); });
  await_others(true);
  seen.arrive_and_wait();
  other.join();
  await_others(false);
}
#endif

}  // namespace
