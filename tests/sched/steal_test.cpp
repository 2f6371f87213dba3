// SPDX-License-Identifier: Apache-2.0
// Waiting work reaches idle workers, whatever its owner does.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "../common/thread_asleep.hpp"
#include "strata/detail/join.hpp"
#include "strata/fiber.hpp"
#include "strata/fork_join.hpp"
#include "strata/slot.hpp"
#include "strata/task_scope.hpp"
#include "strata/thread.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

class steal : public ::testing::Test {
 protected:
  void SetUp() override { STRATA_SKIP_UNLESS_STEALING_IS_CERTAIN(); }
};

TEST_F(steal, a_branch_runs_elsewhere_while_its_sibling_waits_for_it) {
  runtime rt(with_workers(2));
  rt.run([] {
    for (int round = 0; round < 200; ++round) {
      std::thread::id left, right;
      fork_stolen([&] { left = std::this_thread::get_id(); },
                  [&] { right = std::this_thread::get_id(); });
      EXPECT_NE(left, right);
    }
  });
  EXPECT_GE(rt.stats().total().steals, 200u);
}

TEST_F(steal, a_join_waits_on_its_stack_and_its_worker_goes_on) {
  runtime rt(with_workers(2));
  rt.run([&] {
    for (int round = 0; round < 100; ++round) {
      // The other worker holds on to the right branch until somebody has run what it submits, and
      // only the worker whose stack waits at the join is left for that.
      std::atomic<bool> ran{false};
      fork_stolen([] {},
                  [&] {
                    rt.submit([&] { ran = true; });
                    spin_until(ran);
                  });
    }
  });
  EXPECT_GE(rt.stats().total().suspensions, 100u);
}

// Nobody is hungry when the fork happens, and the owner then computes for ever: only a thief that
// helps itself can take the branch.
TEST_F(steal, the_owner_need_not_cooperate) {
  runtime rt(with_workers(2));
  rt.run([&] {
    for (int round = 0; round < scaled(50, 10); ++round) {
      // Occupies the other worker until the fork has happened.
      std::atomic<bool> busy{false};
      std::atomic<bool> release{false};
      std::atomic<bool> taken{false};
      task_scope scope;
      scope.spawn([&] {
        busy = true;
        spin_until(release);
      });
      spin_until(busy);
      // Answers what the other worker has asked for so far.
      fork2join([] {}, [] {});
      // Now nobody is hungry, so the right branch stays private; and from here on the owner answers
      // no more.
      fork2join(
          [&] {
            release = true;
            spin_until(taken);
          },
          [&] { taken = true; });
      scope.sync();
    }
  });
  EXPECT_GT(rt.stats().total().forced, 0u);
}

// Waits until the other of two workers has nothing to do, and wants some of what this one has.
void wait_until_asked() {
  spin_until([] { return detail::this_worker().deque.asked(); });
}

// Keeps the other of two workers busy until it is released.
class other_worker_is_busy {
 public:
  explicit other_worker_is_busy(task_scope& scope) {
    scope.spawn([this] {
      begun_ = true;
      spin_until(released_);
    });
    spin_until(begun_);
    // Answers what the other worker has asked for so far.
    fork2join([] {}, [] {});
  }
  void release() { released_ = true; }

 private:
  std::atomic<bool> begun_{false}, released_{false};
};

// Children that spawn nothing push nothing, and the other worker begins to ask when all of them
// have been spawned.
TEST_F(steal, a_scope_shares_its_children_while_it_runs_them) {
  runtime rt(with_workers(2));
  rt.run([&] {
    const std::thread::id maker = std::this_thread::get_id();
    std::atomic<bool> syncs{false};
    task_scope scope;
    other_worker_is_busy other(scope);
    for (int i = 0; i < 1000; ++i) {
      scope.spawn([&] {
        if (std::this_thread::get_id() == maker) syncs = true;
        spin_until(syncs);
      });
    }
    other.release();
    wait_until_asked();
    const std::uint64_t before = rt.stats().total().shares;
    scope.sync();
    EXPECT_GT(rt.stats().total().shares, before);
  });
}

// What an owner keeps that does nothing but compute goes to the others by halves: each time costs
// all that run a fence.
TEST_F(steal, whoever_helps_itself_takes_half) {
  constexpr unsigned children = 1000;
  runtime rt(with_workers(2));
  rt.run([&] {
    std::atomic<unsigned> ran{0};
    task_scope scope;
    other_worker_is_busy other(scope);
    for (unsigned i = 0; i < children; ++i) scope.spawn([&] { ++ran; });
    const std::uint64_t before = rt.stats().total().forced;
    other.release();
    spin_until([&] { return ran == children; });
    EXPECT_LE(rt.stats().total().forced - before, 12u);
    scope.sync();
  });
}

// More children than a deque has room for, whose maker computes until all have run.
TEST_F(steal, what_found_the_deque_full_is_taken_too) {
  constexpr unsigned children = 20'000;
  runtime rt(with_workers(2));
  rt.run([&] {
    std::atomic<unsigned> ran{0};
    task_scope scope;
    other_worker_is_busy other(scope);
    for (unsigned i = 0; i < children; ++i) scope.spawn([&] { ++ran; });
    const std::uint64_t before = rt.stats().total().parks;
    other.release();
    spin_until([&] { return ran == children || rt.stats().total().parks != before; });
    EXPECT_EQ(ran, children) << "the other worker has gone to sleep";
    scope.sync();
  });
}

// A token that sends none, of many that were sent while nobody asked.
struct sends_none : threaded {
  std::thread::id sender;
  std::atomic<bool>* runs;
  slot_ptr done;
  void start() {
    if (std::this_thread::get_id() == sender) *runs = true;
    spin_until(*runs);
    sync(done);
    terminate();
  }
};

TEST_F(steal, a_worker_shares_its_tokens_while_it_runs_them) {
  runtime rt(with_workers(2));
  std::atomic<bool> runs{false};
  std::uint64_t before = 0;
  rt.run([&] {
    constexpr unsigned tokens = 1000;
    completion all(tokens);
    task_scope scope;
    other_worker_is_busy other(scope);
    for (unsigned i = 0; i < tokens; ++i)
      token<sends_none>(std::this_thread::get_id(), &runs, all.sptr());
    other.release();
    wait_until_asked();
    before = rt.stats().total().shares;
    all.wait();
    scope.sync();
  });
  EXPECT_GT(rt.stats().total().shares, before);
}

TEST_F(steal, each_of_many_waiting_branches_finds_a_worker) {
  constexpr unsigned workers = 8;
  runtime rt(with_workers(workers));
  struct meet {
    // All branches meet: every worker must have taken one.
    static void all(unsigned n, std::atomic<unsigned>& arrived) {
      if (n == 1) {
        arrived.fetch_add(1);
        spin_until([&] { return arrived.load() >= workers; });
        return;
      }
      fork2join([&, n] { all(n / 2, arrived); }, [&, n] { all(n - n / 2, arrived); });
    }
  };
  for (int round = 0; round < scaled(20, 5); ++round) {
    std::atomic<unsigned> arrived{0};
    rt.run([&] { meet::all(workers, arrived); });
    EXPECT_EQ(arrived.load(), workers);
  }
}

// A thread is about to wait, and what it waits for happens while it leaves its worker, which has
// begun another one that never gives way: the other worker, asleep by then, is called.
TEST_F(steal, a_thread_that_need_not_wait_after_all_goes_on_elsewhere) {
  const options two = with_workers(2);
  if (two.policy != "steal") GTEST_SKIP() << "what a worker keeps nobody takes from it";
  runtime rt(two);
  rt.run([] {
    struct {
      std::atomic<pid_t> other{0};
      std::atomic<bool> left{false}, begun{false}, ended{false};
    } s;
    thread([] {}).join();  // leaves a stack at hand, so that the next begins at once
    thread elsewhere([&s] {
      s.other = ::gettid();
      spin_until(s.left);
    });
    // The other worker takes it, if this one does not begin it: then it is the other one's turn.
    const pid_t here = ::gettid();
    spin_until([&] { return s.other != 0; });
    ASSERT_NE(s.other, here);
    thread computes([&s] {
      s.begun = true;
      spin_until(s.ended);
    });
    detail::suspend(
        [](detail::stack&, void* argument) {
          auto& all = *static_cast<decltype(s)*>(argument);
          all.left = true;
          spin_until([&] { return all.begun || sleeps(all.other); });
          return false;
        },
        &s);
    s.ended = true;
    computes.join();
    elsewhere.join();
  });
}

TEST_F(steal, sleepers_are_woken_for_work_that_appears_late) {
  runtime rt(with_workers(4));
  // Each round begins with all workers asleep.
  for (int round = 0; round < scaled(100, 20); ++round) {
    rt.wait_idle();
    rt.run([] {
      std::atomic<unsigned> here{0};
      task_scope scope;
      for (int i = 0; i < 3; ++i) {
        scope.spawn([&] {
          here.fetch_add(1);
          spin_until([&] { return here.load() == 4; });
        });
      }
      here.fetch_add(1);
      spin_until([&] { return here.load() == 4; });
      scope.sync();
    });
  }
}

}  // namespace
}  // namespace strata::test
