// SPDX-License-Identifier: Apache-2.0
// What a fiber must not do is refused with the fiber's name, and what leaves a fiber reaches run();
// the runtime is as good as new afterwards.
#include <gtest/gtest.h>

#include <atomic>
#include <cereal/types/string.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../sched/support.hpp"
#include "strata/fiber.hpp"
#include "strata/mailbox.hpp"
#include "strata/parallel.hpp"
#include "strata/serialize.hpp"
#include "strata/task_scope.hpp"

namespace strata::test {
namespace {

// Sends one token, waits for what never comes, and says what arrived instead.
template <class F, class... A>
std::string what_leaves(runtime& rt, const A&... arguments) {
  try {
    rt.run([&] {
      completion never;
      token<F>(arguments...);
      never.wait();
    });
  } catch (const std::exception& e) {
    return e.what();
  }
  return "nothing";
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

struct forks : threaded {
  void start() {
    fork2join([] {}, [] {});
  }
};
struct spawns : threaded {
  void start() {
    task_scope scope;
    scope.spawn([] {});
  }
};
struct loops : threaded {
  void start() {
    parallel_for(0, 10, [](int) {});
  }
};
struct waits : threaded {
  void start() { sync(to_sptr(BLOCKS)); }
  void blocks() {
    completion done;
    done.wait();
  }
  fiber<&waits::blocks> BLOCKS{this, 1};
};
struct waits_exclusively : threaded {
  void start() { sync(to_sptr(BLOCKS)); }
  void blocks() {
    completion done;
    done.wait();
  }
  exclusive_fiber<&waits_exclusively::blocks> BLOCKS{this, 1};
};
struct terminates_twice : threaded {
  void start() {
    terminate();
    terminate();
  }
};
struct terminates_too_early : threaded {
  void start() {
    sync(to_sptr(PENDING));
    terminate();
  }
  void pending() {}
  fiber<&terminates_too_early::pending> PENDING{this, 1};
};

TEST(misuse, names_the_fiber_that_blocks) {
  runtime rt(with_workers(2));
  for (int round = 0; round < 5; ++round) {
    for (const std::string& what :
         {what_leaves<forks>(rt), what_leaves<spawns>(rt), what_leaves<loops>(rt)}) {
      EXPECT_TRUE(contains(what, "must not block")) << what;
    }
    EXPECT_TRUE(contains(what_leaves<forks>(rt), "forks"));
    EXPECT_TRUE(contains(what_leaves<spawns>(rt), "spawns"));
    EXPECT_TRUE(contains(what_leaves<waits>(rt), "waits::blocks"));
    EXPECT_TRUE(contains(what_leaves<waits_exclusively>(rt), "waits_exclusively::blocks"));
  }
}

// The message of what a call within the runtime throws.
template <class F>
std::string refusal_of(F call) {
  runtime rt(with_workers(1));
  return rt.run([&]() -> std::string {
    try {
      call();
    } catch (const misuse_error& e) {
      return e.what();
    }
    return "nothing";
  });
}

TEST(misuse, of_a_slot_that_cannot_count_so_many_is_refused) {
  EXPECT_EQ(refusal_of([] {
              completion done(10);
              incr_sync(done.sptr(), UINT32_MAX - 10);  // as many as there can be
              incr_sync(done.sptr());
            }),
            "sync slot: an increment beyond 4294967295 signals in all (completion)");
}

TEST(misuse, of_a_mailbox_that_is_nowhere_is_refused) {
  EXPECT_EQ(refusal_of([] { drop_in(global_ptr<mailbox>(), 5); }),
            "the global_ptr to a mailbox points nowhere: give it the address of something first");
}

TEST(misuse, of_a_block_of_fewer_than_no_elements_is_refused) {
  EXPECT_EQ(refusal_of([] {
              const double from = 1;
              double to = 0;
              completion done;
              // Times 8 that is 8 again.
              block_move_sync(to_global(&from), to_global(&to), (std::size_t{1} << 61) + 1,
                              done.sptr());
            }),
            "a block of 2305843009213693953 elements of 8 bytes is larger than any memory: is its "
            "count a difference below 0?");
}

TEST(misuse, of_terminate_is_refused) {
  runtime rt(with_workers(2));
  for (int round = 0; round < 5; ++round) {
    EXPECT_TRUE(contains(what_leaves<terminates_twice>(rt), "twice"));
    EXPECT_TRUE(contains(what_leaves<terminates_too_early>(rt), "enabled and has not begun"));
  }
}

// ---- exceptions

struct throws_up : threaded {
  int number;
  void start() { throw std::out_of_range(std::to_string(number)); }
};
struct ok : threaded {
  slot_ptr done;
  void start() {
    sync(done);
    terminate();
  }
};

void expect_usable(runtime& rt) {
  rt.run([] {
    completion done(20);
    for (int i = 0; i < 20; ++i) token<ok>(done.sptr());
    done.wait();
    EXPECT_EQ(fork2join([] { return 1; }, [] { return 2; }), std::pair(1, 2));
  });
}

class failure_workers : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(workers, failure_workers, ::testing::Values(1, 2, 4, 8),
                         ::testing::PrintToStringParamName());

TEST_P(failure_workers, of_a_fiber_reaches_run_with_its_type) {
  runtime rt(with_workers(GetParam()));
  for (int round = 0; round < 50; ++round) {
    try {
      rt.run([&] {
        completion never;
        token<throws_up>(round);
        never.wait();
      });
      FAIL();
    } catch (const std::out_of_range& e) {
      EXPECT_EQ(e.what(), std::to_string(round));
    }
    expect_usable(rt);
  }
}

TEST_P(failure_workers, reaches_run_although_nobody_waits) {
  runtime rt(with_workers(GetParam()));
  for (int round = 0; round < 5; ++round) {
    // The root may be over before the token begins; only if not is it the one to tell.
    try {
      rt.run([&] { token<throws_up>(round); });
    } catch (const std::out_of_range& e) {
      EXPECT_EQ(e.what(), std::to_string(round));
    }
    rt.wait_idle();
    expect_usable(rt);
  }
}

// ---- what throws before the first fiber

struct refuses_a_value : threaded {
  explicit refuses_a_value(int n) { throw std::out_of_range(std::to_string(n)); }
  void start() { FAIL() << "there is no frame"; }
};
struct refuses_an_object : threaded {
  explicit refuses_an_object(const std::string& text) { throw std::out_of_range(text); }
  void start() { FAIL() << "there is no frame"; }
};
// Once it has been moved or copied so many times.
struct sticks {
  int moves_left = 0;
  std::string text;
  sticks() = default;
  sticks(int moves, std::string t) : moves_left(moves), text(std::move(t)) {}
  sticks(const sticks& other) : sticks(other.moves_left - 1, other.text) { check(); }
  sticks(sticks&& other) : sticks(other.moves_left - 1, std::move(other.text)) { check(); }
  void check() const {
    if (moves_left < 0) throw std::out_of_range("stuck");
  }
  template <class Archive>
  void serialize(Archive& a) {
    a(moves_left, text);
  }
};
struct takes_what_sticks : threaded {
  sticks argument;
  slot_ptr done;
  void start() {
    sync(done);
    terminate();
  }
};

TEST_P(failure_workers, before_the_first_fiber_reaches_run) {
  runtime rt(with_workers(GetParam()));
  const std::string text(100, 't');
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(what_leaves<refuses_a_value>(rt, round), std::to_string(round));
    EXPECT_EQ(what_leaves<refuses_an_object>(rt, text), text);
    // Into the token; out of it; into the frame.
    for (int moves = 0; moves < 3; ++moves)
      EXPECT_EQ(what_leaves<takes_what_sticks>(rt, sticks(moves, text), slot_ptr()), "stuck");
    expect_usable(rt);
  }
  rt.run([&] {
    completion done;
    token<takes_what_sticks>(sticks(3, text), done.sptr());
    done.wait();
  });
}

// A tree of tokens in which many throw, while the others write to memory that the root owns.
struct writer : threaded {
  int depth;
  std::uint64_t random;
  global_ptr<long> to;
  slot_ptr done;
  void start() {
    prng next(random);
    if (depth == 0) {
      if (next.below(50) == 0) throw std::runtime_error("leaf");
      for (long i = 0; i < 20; ++i) put_sync(i, to, slot_ptr());
      sync(done);
    } else {
      token<writer>(depth - 1, next(), to, done);
      token<writer>(depth - 1, next(), to + (1 << (depth - 1)), done);
    }
    terminate();
  }
};

TEST_P(failure_workers, comes_when_no_fiber_writes_any_more) {
  runtime rt(with_workers(GetParam()));
  prng random(seed());
  int failed = 0;
  for (int round = 0; round < scaled(300, 60); ++round) {
    constexpr int depth = 6;
    try {
      rt.run([&] {
        // Freed when the exception passes: a late writer is a use after free, and its signal would
        // reach a completion that is gone.
        const auto memory = std::make_unique<std::vector<long>>(1 << depth);
        const auto done = std::make_unique<completion>(1U << depth);
        token<writer>(depth, random(), to_global(memory->data()), done->sptr());
        done->wait();
      });
    } catch (const std::runtime_error&) {
      ++failed;
    }
  }
  EXPECT_GT(failed, 0);
  expect_usable(rt);
}

TEST_P(failure_workers, frees_every_waiting_task) {
  runtime rt(with_workers(GetParam()));
  for (int round = 0; round < scaled(30, 10); ++round) {
    std::atomic<int> told{0};
    EXPECT_THROW(rt.run([&] {
      task_scope scope;
      for (int i = 0; i < 10; ++i) {
        scope.spawn([&, i] {
          try {
            completion never;
            if (i == 5) token<throws_up>(1);
            never.wait();
          } catch (const std::out_of_range&) {
            ++told;
            // Waits again, during the failure.
            completion neither;
            token<ok>(neither.sptr());
            neither.wait();
          }
        });
      }
      scope.sync();
    }),
                 std::out_of_range);
    EXPECT_EQ(told, 10);
    expect_usable(rt);
  }
}

// Threads from outside whose computations fail at the same time: every run() ends, with a value or
// an exception, and afterwards all is well.
TEST_P(failure_workers, of_several_threads_at_once) {
  runtime rt(with_workers(GetParam()));
  const std::uint64_t s = seed();
  std::atomic<int> failed{0};
  std::atomic<int> wrong{0};
  const auto outside = [&](std::uint64_t self) {
    prng random(s + self);
    for (int round = 0; round < scaled(100, 25); ++round) {
      const bool fails = random.below(3) == 0;
      try {
        rt.run([&] {
          const auto done = std::make_unique<completion>(fails ? 11 : 10);
          for (int i = 0; i < 10; ++i) token<ok>(done->sptr());
          if (fails) token<throws_up>(7);
          done->wait();
        });
        wrong += fails;
      } catch (const std::out_of_range& e) {
        wrong += std::string(e.what()) != "7";
        ++failed;
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) threads.emplace_back(outside, t);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(failed, 0);
  rt.wait_idle();
  expect_usable(rt);
}

TEST(failure, of_the_function_itself_goes_first) {
  runtime rt(with_workers(2));
  EXPECT_THROW(rt.run([] {
    token<throws_up>(1);
    throw std::logic_error("the function's own");
  }),
               std::logic_error);
  rt.wait_idle();
  expect_usable(rt);
}

TEST(failure_death, that_nobody_waits_for_is_reported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        {
          runtime rt(with_workers(1));
          rt.submit([] { token<throws_up>(4711); });
          rt.wait_idle();
          rt.run([] {});
        }
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "exception left a fiber.*4711");
}

TEST(failure_death, that_nobody_waits_for_is_reported_at_the_end) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        {
          runtime rt(with_workers(1));
          rt.submit([] { token<throws_up>(4712); });
        }
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "exception left a fiber.*4712");
}

// Results of roots are not lost with the fiber's exception.
TEST(failure, drops_the_result) {
  ASSERT_EQ(tracked::living(), 0);
  runtime rt(with_workers(2));
  EXPECT_THROW(rt.run([] {
    completion never;
    token<throws_up>(1);
    try {
      never.wait();
    } catch (const std::out_of_range&) {
    }
    return tracked(1);
  }),
               std::out_of_range);
  EXPECT_EQ(tracked::living(), 0);
}

}  // namespace
}  // namespace strata::test
