// SPDX-License-Identifier: Apache-2.0
// Stacks that run nothing: workers have some at hand, and give them up where others want them;
// pools give back the memory of those that nobody uses, and keep some for who must have one.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <system_error>
#include <vector>

#include "../common/counted.hpp"
#include "../common/enabled_together.hpp"
#include "context/stack_pool.hpp"
#include "few_stacks.hpp"
#include "sched/scheduler.hpp"
#include "strata/fiber.hpp"
#include "strata/semaphore.hpp"
#include "strata/task_scope.hpp"
#include "strata/thread.hpp"
#include "support.hpp"

// ThreadSanitizer needs the addresses.
#if !defined(STRATA_TSAN)

namespace strata::test {
namespace {

// Nobody else takes such a thread.
thread_attributes pinned_here() {
  thread_attributes here;
  here.pinned = true;
  return here;
}

// Those that other workers keep at hand, which run nothing.
unsigned at_hand_elsewhere() {
  const detail::place& here = detail::this_place();
  unsigned n = 0;
  for (unsigned i = 0; i < here.owner->workers(); ++i)
    n += i != here.id && here.owner->place_at(i).has_spare() ? 1 : 0;
  return n;
}

// f() on a worker, and nothing elsewhere, while others sleep and have stacks at hand.
template <class F>
void run_among_sleepers(runtime& rt, const F& f) {
  struct meet {
    static void all(unsigned n, std::atomic<unsigned>& missing) {
      if (n == 1) {
        --missing;
        return spin_until([&] { return missing == 0; });
      }
      fork2join([&, n] { all(n / 2, missing); }, [&, n] { all(n - n / 2, missing); });
    }
  };
  bool done = false;
  while (!done) {
    // All of them run something; who ends it last has a stack at hand.
    std::atomic<unsigned> missing{rt.workers()};
    rt.run([&] { meet::all(rt.workers(), missing); });
    rt.wait_idle();
    rt.run([&] {
      thread(pinned_here(), [&] {
        done = at_hand_elsewhere() != 0;
        if (done) f();
      }).join();
    });
  }
}

// By a worker: until it gives them back, nobody finds one in the pool, or only the kept ones.
template <bool ButKept>
class all_stacks_taken {
 public:
  all_stacks_taken() {
    while (detail::stack* const s = another()) taken_.push_back(s);
    while (detail::stack* const s = detail::this_place().take_spare()) taken_.push_back(s);
  }
  ~all_stacks_taken() {
    for (detail::stack* const s : taken_) pool_.give(s);
  }
  all_stacks_taken(const all_stacks_taken&) = delete;
  all_stacks_taken& operator=(const all_stacks_taken&) = delete;

 private:
  detail::stack* another() noexcept {
    return ButKept && pool_.only_kept_are_left() ? nullptr : pool_.take_kept();
  }
  detail::stack_pool& pool_ = detail::this_worker().owner->stacks;
  std::vector<detail::stack*> taken_;
};
using all_stacks_of_the_pool = all_stacks_taken<false>;
using all_stacks_but_the_kept_ones = all_stacks_taken<true>;

bool has_one_for_a_fork() {
  try {
    detail::this_place().require_spare();
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

TEST(stacks, are_taken_from_workers_that_sleep) {
  STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN();
  const auto program = [] {
    runtime rt(with_large_stacks(4));
    refuse_address_space();
    bool right = true;
    run_among_sleepers(rt, [&] {
      const all_stacks_of_the_pool none_is_left;
      const unsigned others = at_hand_elsewhere();
      latch all_came(others);
      std::vector<thread> threads;
      for (unsigned i = 0; i < others; ++i)
        threads.emplace_back(pinned_here(), [&] { all_came.arrive_and_wait(); });
      for (thread& t : threads) t.join();
      const all_stacks_of_the_pool nor_are_these;
      right = right && at_hand_elsewhere() == 0 && !has_one_for_a_fork();
    });
    run_among_sleepers(rt, [&] {
      const all_stacks_of_the_pool none_is_left;
      right = right && has_one_for_a_fork();
    });
    std::_Exit(say(right));
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(0), "right");
}

// Also where nobody runs any more who could do that.
TEST(stacks, give_memory_back_while_everybody_sleeps) {
  runtime rt(with_workers(2));
  detail::stack_pool* pool = nullptr;
  std::size_t used = 0;
  rt.run([&] {
    pool = &detail::this_worker().owner->stacks;
    pool->forget_after(1'000'000);
    constexpr int many = 100;
    latch all_came(many + 1), measured(1);
    std::vector<thread> threads;
    for (int i = 0; i < many; ++i) {
      threads.emplace_back([&] {
        volatile char touched[64 * 1024];
        for (std::size_t at = 0; at < sizeof touched; at += 1024) touched[at] = 1;
        all_came.arrive_and_wait();
        measured.wait();
      });
    }
    all_came.arrive_and_wait();
    used = pool->measure().resident;
    measured.count_down();
    for (thread& t : threads) t.join();
  });
  EXPECT_GE(used, std::size_t{100} * 64 * 1024);
  spin_until([&] { return pool->measure().resident < used / 4; });
}

// Whoever leaves that to another one relies on it.
TEST(stacks, are_tidy_when_those_of_every_size_are) {
  runtime rt(with_workers(1));
  rt.run([] {
    detail::scheduler& here = *detail::this_worker().owner;
    constexpr std::size_t one_size = std::size_t{128} << 10, another = 2 * one_size;
    detail::stack* const taken = here.stacks_of(one_size).take();
    (void)here.stacks_of(another).take();
    EXPECT_TRUE(here.memory_is_tidy()) << "all are in use";
    here.stacks_of(one_size).give(taken);
    EXPECT_TRUE(here.stacks.is_tidy());
    EXPECT_FALSE(here.memory_is_tidy());
  });
}

// Whoever yields again and again until its own branch has run has one of those in the end.
TEST(stacks, that_are_kept_are_for_branches_that_are_waited_for) {
  const auto program = [] {
    runtime rt(with_large_stacks(1));
    refuse_address_space();
    bool right = true;
    rt.run([&] {
      detail::stack_pool& pool = detail::this_worker().owner->stacks;
      const all_stacks_but_the_kept_ones others;
      const std::size_t kept = pool.left();
      for (int round = 0; round < 2; ++round) {
        std::atomic<bool> begun{false};
        unsigned yields = 0;
        fork2join(
            [&] {
              for (; !begun; ++yields) {
                // Not at once: who is in its turn may need it.
                right = right && (yields > 256 || pool.left() == kept);
                this_thread::yield();
              }
            },
            [&] { begun = true; });
        if (detail::stack* const s = detail::this_place().take_spare()) s->pool->give(s);
        right = right && kept != 0 && pool.left() == kept;
      }
    });
    std::_Exit(say(right));
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(0), "right");
}

// A worker that has one at hand and runs what needs none.
TEST(stacks, are_given_up_by_workers_that_run) {
  STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN();
  const auto program = [] {
    runtime rt(with_large_stacks(2));
    refuse_address_space();
    rt.run([] {
      std::atomic<bool> has_one{false}, ran{false};
      fork_stolen(
          [&] {
            while (!has_one) this_thread::yield();
            const all_stacks_of_the_pool none_is_left;
            thread(pinned_here(), [&] { ran = true; }).join();
          },
          [&] {
            while (!detail::this_place().has_spare()) thread([] {}).join();
            has_one = true;
            while (!ran) this_thread::yield();
          });
    });
    std::_Exit(say(true));
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(0), "right");
}

// All of them are in use, and whoever uses one waits by yielding.
TEST(stacks, are_not_asked_for_by_what_needs_none) {
  const auto program = [] {
    runtime rt(with_large_stacks(1));
    refuse_address_space();
    rt.run([] {
      const all_stacks_of_the_pool none_is_left;
      constexpr int tokens = 10;
      std::atomic<int> ran = 0;
      completion done(2 * tokens);
      for (int i = 0; i < tokens; ++i) token<counted>(&ran, done.sptr());
      while (ran != tokens) this_thread::yield();
      for (int i = 0; i < tokens; ++i) token<enabled_together>(&ran, done.sptr());
      while (ran != 4 * tokens) this_thread::yield();
      done.wait();
    });
    std::_Exit(say(true));
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(0), "right");
}

}  // namespace
}  // namespace strata::test

#endif
