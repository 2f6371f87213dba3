// SPDX-License-Identifier: Apache-2.0
// Figure 1 of the EARTH paper, with the counts that it must have.
#include <gtest/gtest.h>

#include <array>

#include "../sched/support.hpp"
#include "strata/fiber.hpp"

namespace strata::test {
namespace {

// As printed, fib(0) = fib(1) = 1.
struct fib : threaded {
  int n;
  global_ptr<long> result;
  slot_ptr done;
  long r1, r2;

  void start() {
    if (n <= 1) {
      put_sync(1L, result, done);
      terminate();
    } else {
      token<fib>(n - 1, to_global(&r1), to_sptr(READY));
      token<fib>(n - 2, to_global(&r2), to_sptr(READY));
    }
  }
  void ready() {
    put_sync(r1 + r2, result, done);
    terminate();
  }
  fiber<&fib::ready> READY{this, 2};
};

// The same with INVOKE on this node, in place of TOKEN.
struct invoked_fib : threaded {
  int n;
  global_ptr<long> result;
  slot_ptr done;
  long r1, r2;

  void start() {
    if (n <= 1) {
      put_sync(1L, result, done);
      terminate();
    } else {
      invoke<invoked_fib>(node_id(), n - 1, to_global(&r1), to_sptr(READY));
      invoke<invoked_fib>(node_id(), n - 2, to_global(&r2), to_sptr(READY));
    }
  }
  void ready() {
    put_sync(r1 + r2, result, done);
    terminate();
  }
  fiber<&invoked_fib::ready> READY{this, 2};
};

struct counts {
  int n;
  long value;
  std::uint64_t activations;
  std::uint64_t ready;
};
// From the tree of calls: activations = 2 fib(n) - 1, one READY for each call that is no leaf.
constexpr std::array<counts, 7> figure_1{{{0, 1, 1, 0},
                                          {1, 1, 1, 0},
                                          {2, 2, 3, 1},
                                          {3, 3, 5, 2},
                                          {12, 233, 465, 232},
                                          {16, 1597, 3193, 1596},
                                          {20, 10946, 21891, 10945}}};
constexpr counts large =
    slow_build ? counts{16, 1597, 3193, 1596} : counts{25, 121393, 242785, 121392};

template <class F>
void expect_counts(unsigned workers, const counts& expected) {
  runtime rt(with_workers(workers));
  const long value = rt.run([&] {
    long v = 0;
    completion done;
    token<F>(expected.n, to_global(&v), done.sptr());
    done.wait();
    return v;
  });
  EXPECT_EQ(value, expected.value);
  rt.wait_idle();
  const statistics s = rt.stats();
  EXPECT_EQ(s.total().activations, expected.activations);
  EXPECT_EQ(s.total().tokens, expected.activations);
  EXPECT_EQ(s.total().terminations, expected.activations);
  EXPECT_EQ(s.total().fibers, expected.ready);
  EXPECT_EQ(s.live_frames, 0);
}

class figure_1_workers : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(workers, figure_1_workers, ::testing::Values(1, 2, 4, 8, 64),
                         ::testing::PrintToStringParamName());

TEST_P(figure_1_workers, has_the_counts_of_the_tree) {
  for (const counts& c : figure_1) expect_counts<fib>(GetParam(), c);
  expect_counts<fib>(GetParam(), large);
}

TEST_P(figure_1_workers, has_them_with_invoke_too) {
  for (const counts& c : figure_1) expect_counts<invoked_fib>(GetParam(), c);
}

TEST(figure_1, frames_come_from_the_pool_again) {
  runtime rt(with_workers(2));
  for (int round = 0; round < 20; ++round) {
    const long value = rt.run([] {
      long v = 0;
      completion done;
      token<fib>(12, to_global(&v), done.sptr());
      done.wait();
      return v;
    });
    EXPECT_EQ(value, 233);
    rt.wait_idle();
    EXPECT_EQ(rt.stats().live_frames, 0);
  }
}

// A token for every iteration of a loop: more than the deque holds wait at once.
struct tick : threaded {
  global_ptr<std::atomic<long>> count;
  slot_ptr done;
  void start() {
    count.local()->fetch_add(1, std::memory_order_relaxed);
    sync(done);
    terminate();
  }
};

TEST(tokens, any_number_may_wait) {
  constexpr std::uint32_t tokens = scaled(200'000U, 70'000U);
  static_assert(tokens > 65'536);
  for (const unsigned workers : {1U, 2U, 8U}) {
    runtime rt(with_workers(workers));
    std::atomic<long> count{0};
    rt.run([&] {
      completion done(tokens);
      for (std::uint32_t i = 0; i < tokens; ++i) token<tick>(to_global(&count), done.sptr());
      done.wait();
    });
    EXPECT_EQ(count, static_cast<long>(tokens));
    rt.wait_idle();
    EXPECT_EQ(rt.stats().live_frames, 0);
  }
}

// A constructor in place of an aggregate.
struct built : threaded {
  built(int a, slot_ptr d) : twice(2 * a), done(d) {}
  void start() {
    seen = twice;
    sync(done);
    terminate();
  }
  int twice;
  slot_ptr done;
  static inline std::atomic<int> seen{0};
};

TEST(tokens, may_be_taken_by_a_constructor) {
  runtime rt(with_workers(1));
  rt.run([] {
    completion done;
    token<built>(21, done.sptr());
    done.wait();
  });
  EXPECT_EQ(built::seen, 42);
}

// A frame that is larger than its token by far, and one without parameters.
struct large_frame : threaded {
  slot_ptr done;
  std::array<long, 500> content;
  void start() {
    content.fill(7);
    sync(to_sptr(LATER));
  }
  void later() {
    for (const long c : content) EXPECT_EQ(c, 7);
    sync(done);
    terminate();
  }
  fiber<&large_frame::later> LATER{this, 1};
};
struct no_parameters : threaded {
  void start() {
    ran = true;
    terminate();
  }
  static inline std::atomic<bool> ran{false};
};

TEST(tokens, of_any_size) {
  runtime rt(with_workers(2));
  rt.run([] {
    completion done(100);
    for (int i = 0; i < 100; ++i) token<large_frame>(done.sptr());
    done.wait();
    token<no_parameters>();
  });
  rt.wait_idle();
  EXPECT_TRUE(no_parameters::ran);
  EXPECT_EQ(rt.stats().live_frames, 0);
}

// Frame variables are destroyed with the frame.
struct with_members : threaded {
  slot_ptr done;
  tracked member;
  void start() {
    sync(done);
    terminate();
  }
};

TEST(frames, are_destroyed_at_their_end) {
  ASSERT_EQ(tracked::living(), 0);
  runtime rt(with_workers(4));
  rt.run([] {
    completion done(1000);
    for (int i = 0; i < 1000; ++i) token<with_members>(done.sptr());
    done.wait();
  });
  rt.wait_idle();
  EXPECT_EQ(tracked::living(), 0);
}

TEST(tokens, outside_a_runtime_are_misuse) {
  EXPECT_THROW(token<no_parameters>(), misuse_error);
  EXPECT_THROW(invoke<no_parameters>(0), misuse_error);
  int local = 0;
  EXPECT_THROW(to_global(&local), misuse_error);
  EXPECT_THROW((void)node_id(), misuse_error);
}

TEST(tokens, may_be_sent_by_tasks_that_do_not_wait) {
  for (const unsigned workers : {1U, 2U}) {
    runtime rt(with_workers(workers));
    std::atomic<long> count{0};
    const auto send = [&] {
      for (int i = 0; i < 50; ++i) {
        token<tick>(to_global(&count), slot_ptr());
        invoke<tick>(node_id(), to_global(&count), slot_ptr());
      }
    };
    // A thread that entered leaves them to the worker, which may have slept in many places.
    for (int round = 0; round < 20; ++round) {
      rt.run(send);
      if (round % 2 == 0) rt.submit(send);
      rt.wait_idle();
      ASSERT_EQ(count, 100 * (round + 1 + round / 2 + 1));
    }
    EXPECT_EQ(rt.stats().live_frames, 0);
  }
}

}  // namespace
}  // namespace strata::test
