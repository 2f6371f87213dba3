// SPDX-License-Identifier: Apache-2.0
#include "net/attendance.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <thread>

#include "net/wait_for_events.hpp"
#include "os/descriptor.hpp"

namespace strata::net {
namespace {

struct attended : testing::Test {
  os::descriptor source{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  os::descriptor sleeps{epoll_on({source.get()})};
  attendance who{sleeps.get(), source.get()};

  void make_readable() {
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(source.get(), &one, sizeof one), ssize_t{sizeof one});
  }
  void empty() {
    std::uint64_t count;
    ASSERT_EQ(::read(source.get(), &count, sizeof count), ssize_t{sizeof count});
  }
  bool wakes(std::int64_t timeout_ns = 0) {
    epoll_event event;
    const attendance::sleep asleep(who);
    return wait_for_events(sleeps.get(), &event, 1, timeout_ns) != 0;
  }
};

TEST_F(attended, nobody_is_woken_while_somebody_attends) {
  who.begin();
  make_readable();
  EXPECT_FALSE(wakes());
  empty();
  who.end();
  EXPECT_FALSE(wakes());
  make_readable();
  EXPECT_TRUE(wakes());
}

TEST_F(attended, the_last_one_to_go_counts) {
  who.begin();
  who.begin();
  make_readable();
  who.end();
  EXPECT_FALSE(wakes());
  who.end();
  EXPECT_TRUE(wakes());
}

TEST_F(attended, somebody_is_there_until_the_last_one_has_gone) {
  EXPECT_FALSE(who.is_there());
  who.begin();
  who.begin();
  who.end();
  EXPECT_TRUE(who.is_there());
  who.end();
  EXPECT_FALSE(who.is_there());
}

TEST_F(attended, what_is_left_wakes_who_sleeps_already) {
  for (int i = 0; i < 200; ++i) {
    who.begin();
    bool woken = false;
    std::thread sleeper([&] { woken = wakes(60'000'000'000); });
    make_readable();
    who.end();
    sleeper.join();
    EXPECT_TRUE(woken);
    empty();
  }
}

TEST_F(attended, whoever_falls_asleep_meanwhile_is_not_woken_either) {
  make_readable();
  who.begin();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(wakes()) << i;
  who.end();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(wakes()) << i;
}

TEST_F(attended, a_sleeper_and_many_who_come_and_go) {
  for (int i = 0; i < 200; ++i) {
    bool woken = false;
    std::thread sleeper([&] { woken = wakes(60'000'000'000); });
    for (int k = 0; k < i % 7; ++k) {
      who.begin();
      who.end();
    }
    who.begin();
    make_readable();
    who.end();
    sleeper.join();
    EXPECT_TRUE(woken);
    empty();
  }
}

TEST_F(attended, many_come_and_go) {
  constexpr int rounds = 2000;
  const auto come_and_go = [&] {
    for (int i = 0; i < rounds; ++i) {
      who.begin();
      who.end();
    }
  };
  std::thread other(come_and_go);
  come_and_go();
  other.join();
  make_readable();
  EXPECT_TRUE(wakes());
}

}  // namespace
}  // namespace strata::net
