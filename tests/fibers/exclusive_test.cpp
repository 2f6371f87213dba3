// SPDX-License-Identifier: Apache-2.0
// The exclusive fibers of one frame run one at a time; those of different frames overlap; a frame
// is there as long as one of them is.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "../sched/support.hpp"
#include "signaller.hpp"
#include "strata/fiber.hpp"

namespace strata::test {
namespace {

// Two exclusive fibers and one plain one; the exclusive ones share an unprotected counter.
struct counter_frame : threaded {
  int senders;
  int times;
  global_ptr<long> result;
  slot_ptr done;
  long unprotected;
  bool inside;
  long overlaps;

  void start() {
    unprotected = overlaps = 0;
    inside = false;
    OVER.init(static_cast<std::uint32_t>(senders * times), 0);
    // Copies: once the last token is sent, the frame may end before this loop does.
    const int last = senders;
    const int each = times;
    for (int i = 0; i < last; ++i) {
      token<signaller>(i % 2 == 0 ? to_sptr(FIRST) : to_sptr(SECOND), each, slot_ptr());
    }
  }
  void count() {
    overlaps += inside;
    inside = true;
    const long seen = unprotected;
    for (int i = 0; i < 20; ++i) static_cast<void>(stack_address());  // a moment
    unprotected = seen + 1;
    inside = false;
    // The last act of an exclusive fiber: whoever it enables may end the frame before we leave.
    sync(to_sptr(OVER));
  }
  void over() {
    put_sync(overlaps == 0 ? unprotected : -overlaps, result, done);
    terminate();
  }
  exclusive_fiber<&counter_frame::count> FIRST{this, 1, 1};
  exclusive_fiber<&counter_frame::count> SECOND{this, 1, 1};
  fiber<&counter_frame::over> OVER{this, 0};

 private:
  [[gnu::noinline]] static std::uintptr_t stack_address() { return detail::stack_pointer(); }
};

class exclusive_workers : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(workers, exclusive_workers, ::testing::Values(1, 2, 4, 8, 64),
                         ::testing::PrintToStringParamName());

TEST_P(exclusive_workers, keep_an_unprotected_counter_exact) {
  runtime rt(with_workers(GetParam()));
  constexpr int frames = 4;
  constexpr int senders = 10;
  constexpr int times = scaled(200, 40);
  for (int round = 0; round < 3; ++round) {
    std::array<long, frames> result{};
    rt.run([&] {
      completion done(frames);
      for (long& r : result) token<counter_frame>(senders, times, to_global(&r), done.sptr());
      done.wait();
    });
    for (const long r : result) EXPECT_EQ(r, senders * times);
  }
  rt.wait_idle();
  EXPECT_EQ(rt.stats().live_frames, 0);
}

// One firing each, ended by a plain fiber that the exclusive one enables: thousands of chances for
// the frame to go while its gate is being left.
struct brief : threaded {
  slot_ptr done;
  void start() {
    sync(to_sptr(EXCLUSIVE));
    // Occupies the ready queue, so that OVER goes where others can take it.
    sync(to_sptr(PLAIN));
  }
  void exclusive() { sync(to_sptr(OVER)); }
  void plain() { sync(to_sptr(OVER)); }
  void over() {
    sync(done);
    terminate();
  }
  exclusive_fiber<&brief::exclusive> EXCLUSIVE{this, 1};
  fiber<&brief::plain> PLAIN{this, 1};
  fiber<&brief::over> OVER{this, 2};
};

TEST_P(exclusive_workers, may_enable_the_fiber_that_ends_their_frame) {
  runtime rt(with_workers(GetParam()));
  constexpr std::uint32_t frames = scaled(20'000U, 2'000U);
  rt.run([] {
    completion done(frames);
    for (std::uint32_t i = 0; i < frames; ++i) token<brief>(done.sptr());
    done.wait();
  });
  rt.wait_idle();
  EXPECT_EQ(rt.stats().total().terminations, frames);
  EXPECT_EQ(rt.stats().live_frames, 0);
}

// Ends the frame while an exclusive fiber of it is known to be still inside.
struct outlived : threaded {
  std::atomic<bool>* inside;
  std::atomic<bool>* terminated;
  slot_ptr done;
  tracked member;
  void start() { sync(to_sptr(STAYS)); }
  void stays() {
    token<signaller>(to_sptr(ENDS), 1, slot_ptr());
    *inside = true;
    // Runs on the other worker meanwhile.
    spin_until(*terminated);
    EXPECT_EQ(tracked::living(), 1);
  }
  void ends() {
    terminate();
    sync(done);
    // Set by the last act, though the frame is ended only after it.
    *terminated = true;
  }
  exclusive_fiber<&outlived::stays> STAYS{this, 1};
  fiber<&outlived::ends> ENDS{this, 1};
};

TEST(exclusive, a_frame_stays_until_its_gate_is_left) {
  STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN();
  ASSERT_EQ(tracked::living(), 0);
  runtime rt(with_workers(2));
  for (int round = 0; round < scaled(100, 20); ++round) {
    std::atomic<bool> inside{false};
    std::atomic<bool> terminated{false};
    rt.run([&] {
      completion done;
      token<outlived>(&inside, &terminated, done.sptr());
      done.wait();
    });
    rt.wait_idle();
    ASSERT_EQ(tracked::living(), 0);
    ASSERT_EQ(rt.stats().live_frames, 0);
  }
}

// Exclusive fibers of two frames wait for each other to be inside: only possible if they overlap.
struct meets : threaded {
  std::atomic<int>* inside;
  slot_ptr done;
  void start() { sync(to_sptr(ALONE)); }
  void alone() {
    ++*inside;
    spin_until([this] { return *inside == 2; });
    sync(done);
    terminate();
  }
  exclusive_fiber<&meets::alone> ALONE{this, 1};
};

TEST(exclusive, other_activations_overlap) {
  STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN();
  runtime rt(with_workers(2));
  for (int round = 0; round < scaled(50, 10); ++round) {
    rt.run([] {
      std::atomic<int> inside{0};
      completion done(2);
      token<meets>(&inside, done.sptr());
      token<meets>(&inside, done.sptr());
      done.wait();
    });
  }
}

// Plain fibers of one frame do overlap.
struct both_at_once : threaded {
  std::atomic<int>* inside;
  slot_ptr done;
  void start() {
    token<signaller>(to_sptr(A), 1, slot_ptr());
    token<signaller>(to_sptr(B), 1, slot_ptr());
  }
  void meet() {
    ++*inside;
    spin_until([this] { return *inside == 2; });
    sync(to_sptr(OVER));
  }
  void over() {
    sync(done);
    terminate();
  }
  fiber<&both_at_once::meet> A{this, 1};
  fiber<&both_at_once::meet> B{this, 1};
  fiber<&both_at_once::over> OVER{this, 2};
};

TEST(exclusive, plain_fibers_of_one_frame_overlap) {
  if (!ready_threads_are_stolen()) GTEST_SKIP() << "one waits behind the other";
  runtime rt(with_workers(2));
  for (int round = 0; round < scaled(50, 10); ++round) {
    rt.run([] {
      std::atomic<int> inside{0};
      completion done;
      token<both_at_once>(&inside, done.sptr());
      done.wait();
    });
  }
}

}  // namespace
}  // namespace strata::test
