// SPDX-License-Identifier: Apache-2.0
// What the tests of the scheduler and of the fibers share.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <utility>

#include "../common/slow_builds.hpp"
#include "strata/detail/fences.hpp"
#include "strata/fork_join.hpp"
#include "strata/options.hpp"
#include "strata/runtime.hpp"

namespace strata::test {

// Of the policy that STRATA_TEST_POLICY names, if set: the same tests hold for all of them.
inline options with_workers(unsigned workers) {
  options wanted;
  wanted.workers = workers;
  if (const char* policy = std::getenv("STRATA_TEST_POLICY")) wanted.policy = policy;
  return wanted;
}

// A runtime with as many workers as the parameter says, in which no frame lives on after the test.
class leaves_no_frame : public ::testing::TestWithParam<unsigned> {
 protected:
  runtime rt{with_workers(GetParam())};
  void TearDown() override {
    rt.wait_idle();
    EXPECT_EQ(rt.stats().live_frames, 0);
  }
};

// Waits without sleeping. What must happen for `done` to come true is another thread's, so the
// processor is offered to it.
template <class Done>
void spin_until(const Done& done) {
  while (!done()) std::this_thread::yield();
}
inline void spin_until(const std::atomic<bool>& flag) {
  spin_until([&] { return flag.load(std::memory_order_acquire); });
}

// fork2join(left, right) in which the right branch begins on another worker, whatever the load of
// the machine: the left one does not go on before. Needs two workers, and asymmetric fences when
// nobody is hungry at the fork.
template <class F, class G>
auto fork_stolen(F left, G right) {
  std::atomic<bool> begun{false};
  return fork2join(
      [&] {
        spin_until(begun);
        return left();
      },
      [&] {
        begun.store(true, std::memory_order_release);
        return right();
      });
}

// In addition, the right branch does not go on before the left one has ended and its stack has been
// suspended. Only one such fork of a runtime at a time.
template <class F, class G>
auto fork_suspended(runtime& rt, F left, G right) {
  const std::uint64_t before = rt.stats().total().suspensions;
  return fork_stolen(left, [&rt, before, &right] {
    spin_until([&] { return rt.stats().total().suspensions > before; });
    return right();
  });
}

// Whether tests may rely on work being taken from an owner that does not answer.
inline bool stealing_is_certain() { return detail::asymmetric_fences::available(); }

// The same for threads and fibers that are ready: under the other policies they wait behind what
// their worker does.
inline bool ready_threads_are_stolen() {
  return stealing_is_certain() && with_workers(1).policy == "steal";
}

#define STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN()                \
  if (!::strata::test::stealing_is_certain())                   \
  GTEST_SKIP() << "this kernel refuses membarrier, so a thief " \
                  "cannot help itself"

// Counts how many of its objects live, to see that none is lost or destroyed twice.
class tracked {
 public:
  tracked() : tracked(0) {}
  explicit tracked(int value) : value_(value) { ++living_; }
  tracked(const tracked& other) : value_(other.value_) { ++living_; }
  tracked(tracked&& other) noexcept : value_(std::exchange(other.value_, -1)) { ++living_; }
  tracked& operator=(const tracked&) = default;
  tracked& operator=(tracked&& other) noexcept {
    value_ = std::exchange(other.value_, -1);
    return *this;
  }
  ~tracked() { --living_; }
  [[nodiscard]] int value() const { return value_; }
  static int living() { return living_.load(); }

 private:
  static inline std::atomic<int> living_{0};
  int value_;
};

// The seed of a randomised test: STRATA_TEST_SEED, or a new one. Printed, so that a failure can be
// repeated.
inline std::uint64_t seed() {
  std::uint64_t value = (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  if (const char* wanted = std::getenv("STRATA_TEST_SEED"))
    value = std::strtoull(wanted, nullptr, 0);
  std::printf("STRATA_TEST_SEED=%llu\n", static_cast<unsigned long long>(value));
  ::testing::Test::RecordProperty("seed", std::to_string(value));
  return value;
}

// Steele, Lea, Flood: splitmix64. Small enough to be a value on every stack.
class prng {
 public:
  explicit prng(std::uint64_t s) : state_(s) {}
  std::uint64_t operator()() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  // 0 to n - 1.
  std::uint64_t below(std::uint64_t n) { return (*this)() % n; }

 private:
  std::uint64_t state_;
};

}  // namespace strata::test
