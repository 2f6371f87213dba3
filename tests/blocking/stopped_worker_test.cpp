// SPDX-License-Identifier: Apache-2.0
// A worker that a thread stops, by a system call that blocks: what waits there goes on elsewhere,
// under every policy.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <tuple>
#include <vector>

#include "../sched/support.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

class stopped_worker : public testing::TestWithParam<std::tuple<const char*, unsigned>> {
 protected:
  void SetUp() override {
    STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN();
    ASSERT_EQ(pipe(ends_), 0);
  }
  void TearDown() override {
    close(ends_[0]);
    close(ends_[1]);
  }
  static options settings() {
    options wanted = with_workers(std::get<1>(GetParam()));
    wanted.policy = std::get<0>(GetParam());
    return wanted;
  }
  void read_one() {
    char c = 0;
    EXPECT_EQ(::read(ends_[0], &c, 1), 1);
  }
  void write_one() { EXPECT_EQ(::write(ends_[1], "x", 1), 1); }

 private:
  int ends_[2] = {-1, -1};
};

// Everybody else has fallen asleep before.
TEST_P(stopped_worker, goes_on_when_one_writes_that_waits_behind_it) {
  runtime rt(settings());
  for (int round = 0; round < 5; ++round) {
    rt.run([&] {
      thread writer([&] { write_one(); });
      read_one();
      writer.join();
    });
  }
}

TEST_P(stopped_worker, does_not_stop_those_that_were_sent_to_it) {
  runtime rt(settings());
  for (int round = 0; round < 5; ++round) {
    rt.run([&] {
      std::atomic<int> ran{0};
      constexpr int others = 100;
      thread reader([&] { read_one(); });
      std::vector<thread> threads;
      for (int i = 0; i < others; ++i) {
        threads.emplace_back([&] {
          for (int k = 0; k < 3; ++k) this_thread::yield();
          if (++ran == others) write_one();
        });
      }
      for (thread& t : threads) t.join();
      reader.join();
    });
  }
}

INSTANTIATE_TEST_SUITE_P(policies, stopped_worker,
                         testing::Combine(testing::Values("steal", "rotator", "locked"),
                                          testing::Values(2u, 4u)),
                         [](const auto& it) {
                           return std::string(std::get<0>(it.param)) + "_" +
                                  std::to_string(std::get<1>(it.param));
                         });

}  // namespace
}  // namespace strata::test
