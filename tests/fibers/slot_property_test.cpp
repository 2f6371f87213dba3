// SPDX-License-Identifier: Apache-2.0
// A slot fires exactly at the count-th signal and at every reset-th after it, whoever signals; it
// notices a signal too many, an increment too late and a frame that is gone.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../sched/support.hpp"
#include "signaller.hpp"
#include "strata/detail/slot_counter.hpp"
#include "strata/fiber.hpp"

namespace strata::test {
namespace {

using detail::increment_outcome;
using detail::signal_outcome;
using detail::slot_counter;

// What a slot is, without atomics.
struct model {
  std::uint64_t count;
  std::uint64_t reset;
  int queued = 0;

  signal_outcome signal() {
    if (count == 0) return signal_outcome::excess;
    if (--count > 0) return signal_outcome::pending;
    ++queued;
    count = reset;
    return signal_outcome::fired;
  }
  increment_outcome increment(std::uint64_t more) {
    if (count == 0) return increment_outcome::late;
    count += more;
    return increment_outcome::counted;
  }
};

TEST(slot_counter, follows_its_model) {
  prng random(seed());
  for (int round = 0; round < 2000; ++round) {
    const auto count = static_cast<std::uint32_t>(random.below(6));
    const auto reset = static_cast<std::uint32_t>(random.below(4));
    slot_counter<> slot(count, reset);
    model expected{count, reset};
    for (int step = 0; step < 40; ++step) {
      switch (random.below(8)) {
        case 0: {
          const auto more = static_cast<std::uint32_t>(random.below(3));
          ASSERT_EQ(slot.increment(more), expected.increment(more));
          break;
        }
        case 1:
          if (expected.queued > 0) {
            --expected.queued;
            slot.begin();
          }
          break;
        case 2:
          // INIT_SYNC, between rounds.
          if (expected.count == 0 && expected.queued == 0) {
            expected = {random.below(5), random.below(3)};
            slot.init(static_cast<std::uint32_t>(expected.count),
                      static_cast<std::uint32_t>(expected.reset));
          }
          break;
        default:
          ASSERT_EQ(slot.signal(), expected.signal());
      }
      ASSERT_EQ(slot.count(), expected.count);
      ASSERT_EQ(slot.queued(), expected.queued > 0);
    }
  }
}

TEST(slot_counter, knows_that_it_is_gone) {
  alignas(slot_counter<>) unsigned char memory[sizeof(slot_counter<>)];
  auto* const slot = ::new (static_cast<void*>(memory)) slot_counter<>(3, 3);
  EXPECT_EQ(slot->signal(), signal_outcome::pending);
  slot->~slot_counter();
  auto* volatile same = slot;  // the memory has not been used again
  slot_counter<>* const gone = same;
  EXPECT_EQ(gone->signal(), signal_outcome::dead);
  EXPECT_EQ(gone->increment(1), increment_outcome::late);
}

TEST(slot_counter, refuses_to_count_beyond_it) {
  slot_counter<> slot(10, 0);
  EXPECT_EQ(slot.increment(0xfffffff6), increment_outcome::too_many);
  EXPECT_EQ(slot.count(), 10U);
  EXPECT_EQ(slot.increment(0xfffffff5), increment_outcome::counted);
  EXPECT_EQ(slot.count(), 0xffffffffU);
  EXPECT_EQ(slot.increment(1), increment_outcome::too_many);
  EXPECT_FALSE(slot.queued());
}

TEST(slot_counter, counts_to_the_largest_number) {
  slot_counter<> slot(0xfffffffe, 0);
  EXPECT_EQ(slot.signal(), signal_outcome::pending);
  EXPECT_EQ(slot.count(), 0xfffffffdU);
}

TEST(slot_counter, fires_once_for_each_round_of_concurrent_signals) {
  prng random(seed());
  for (int round = 0; round < scaled(300, 60); ++round) {
    const auto count = static_cast<std::uint32_t>(1 + random.below(50));
    const auto reset = static_cast<std::uint32_t>(random.below(10));
    const std::uint64_t firings = reset == 0 ? 1 : 1 + random.below(20);
    const std::uint64_t signals = count + (firings - 1) * reset;
    const std::uint64_t excess = reset == 0 ? random.below(20) : 0;
    slot_counter<> slot(count, reset);
    std::atomic<std::uint64_t> left{signals + excess};
    std::atomic<std::uint64_t> fired{0};
    std::atomic<std::uint64_t> refused{0};
    const auto signaller = [&] {
      for (std::uint64_t mine = left; mine > 0;) {
        if (!left.compare_exchange_weak(mine, mine - 1)) continue;
        switch (slot.signal()) {
          case signal_outcome::fired:
            ++fired;
            slot.begin();
            break;
          case signal_outcome::excess:
            ++refused;
            break;
          default:
            break;
        }
      }
    };
    std::thread first(signaller);
    std::thread second(signaller);
    signaller();
    first.join();
    second.join();
    ASSERT_EQ(fired, firings);
    ASSERT_EQ(refused, excess);
    ASSERT_FALSE(slot.queued());
  }
}

// ---- the same through fibers

// Counts its own firings; ended by the last of the expected ones.
struct listener : threaded {
  std::uint32_t count;
  std::uint32_t reset;
  std::atomic<long>* runs;
  long expected;
  global_ptr<slot_ptr> where;
  slot_ptr installed;
  slot_ptr done;

  void start() {
    HEARD.init(count, reset);
    put_sync(to_sptr(HEARD), where, installed);
  }
  void heard() {
    // Firings can overlap: the last one to count ends the frame, whoever it is.
    const long last = expected;
    if (runs->fetch_add(1) + 1 != last) return;
    sync(done);
    terminate();
  }
  fiber<&listener::heard> HEARD{this, 0};
};

class slot_workers : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(workers, slot_workers, ::testing::Values(1, 2, 4, 8),
                         ::testing::PrintToStringParamName());

TEST_P(slot_workers, fire_exactly_as_often_as_they_should) {
  prng random(seed());
  runtime rt(with_workers(GetParam()));
  for (int round = 0; round < scaled(200, 40); ++round) {
    const int signallers = static_cast<int>(1 + random.below(20));
    const int each = static_cast<int>(1 + random.below(20));
    const int total = signallers * each;
    // Any split of the total in a count and firings of a reset.
    const auto reset = static_cast<std::uint32_t>(random.below(7));
    const auto firings = reset == 0 ? 0
                                    : static_cast<std::uint32_t>(random.below(
                                          static_cast<std::uint64_t>((total - 1)) / reset + 1));
    const auto count = static_cast<std::uint32_t>(total) - firings * reset;
    std::atomic<long> runs{0};
    rt.run([&] {
      slot_ptr target;
      completion installed;
      completion done(static_cast<std::uint32_t>(signallers) + 1);
      token<listener>(count, reset, &runs, long{firings} + 1, to_global(&target), installed.sptr(),
                      done.sptr());
      installed.wait();
      for (int i = 0; i < signallers; ++i) token<signaller>(target, each, done.sptr());
      done.wait();
    });
    rt.wait_idle();
    ASSERT_EQ(runs, long{firings} + 1);
    ASSERT_EQ(rt.stats().live_frames, 0);
  }
}

// ---- misuse, reported where it happens

// Signals its own fiber `signals` times, with a count of 2.
struct oversignals : threaded {
  int signals;
  std::uint32_t reset;
  void start() {
    NEVER.init(2, reset);
    for (int i = 0; i < signals; ++i) sync(to_sptr(NEVER));
  }
  void never() {}
  fiber<&oversignals::never> NEVER{this, 2};
};

std::string misuse_of(runtime& rt, void (*send)()) {
  try {
    rt.run(send);
    rt.run([] {});
  } catch (const misuse_error& e) {
    return e.what();
  }
  return "nothing";
}

// Waits, so that the failure is delivered.
template <class F, class... A>
void send_and_wait(const A&... arguments) {
  completion never;
  token<F>(arguments...);
  never.wait();
}

TEST(slots, refuse_a_signal_too_many) {
  runtime rt(with_workers(2));
  const std::string what = misuse_of(rt, [] { send_and_wait<oversignals>(3, 0U); });
  EXPECT_NE(what.find("a signal too many"), std::string::npos) << what;
  EXPECT_NE(what.find("oversignals"), std::string::npos) << what;
}

struct late_increment : threaded {
  void start() {
    sync(to_sptr(ONCE));
    incr_sync(to_sptr(ONCE));
  }
  void once() {}
  fiber<&late_increment::once> ONCE{this, 1};
};

TEST(slots, refuse_an_increment_too_late) {
  runtime rt(with_workers(2));
  const std::string what = misuse_of(rt, [] { send_and_wait<late_increment>(); });
  EXPECT_NE(what.find("increment"), std::string::npos) << what;
  EXPECT_NE(what.find("late_increment"), std::string::npos) << what;
}

struct short_lived : threaded {
  global_ptr<slot_ptr> where;
  slot_ptr done;
  void start() {
    put_sync(to_sptr(GONE), where, done);
    terminate();
  }
  void gone() {}
  fiber<&short_lived::gone> GONE{this, 1};
};

TEST(slots, refuse_a_signal_to_a_frame_that_is_gone) {
  if (address_sanitizer) GTEST_SKIP() << "AddressSanitizer says so itself";
  runtime rt(with_workers(1));
  EXPECT_THROW(rt.run([] {
    slot_ptr gone;
    completion done;
    token<short_lived>(to_global(&gone), done.sptr());
    done.wait();
    try {
      sync(gone);
    } catch (const misuse_error& e) {
      EXPECT_NE(std::string(e.what()).find("terminated"), std::string::npos) << e.what();
      throw;
    }
  }),
               misuse_error);
}

// More signals to come than known at the start.
struct grows : threaded {
  int signals;
  global_ptr<int> result;
  slot_ptr done;
  int seen;
  void start() {
    seen = 0;
    // One signal is still our own to send.
    for (int i = 0; i < signals; ++i) {
      incr_sync(to_sptr(ALL));
      token<signaller>(to_sptr(ALL), 1, slot_ptr());
    }
    incr_sync(to_sptr(ALL), 5);
    for (int i = 0; i < 5; ++i) sync(to_sptr(ALL));
    sync(to_sptr(ALL));
  }
  void all() {
    put_sync(1, result, done);
    terminate();
  }
  fiber<&grows::all> ALL{this, 1};
};

TEST(slots, can_await_more_signals_than_they_began_with) {
  runtime rt(with_workers(4));
  for (int round = 0; round < scaled(200, 30); ++round) {
    EXPECT_EQ(rt.run([&] {
      int result = 0;
      completion done;
      token<grows>(round % 50, to_global(&result), done.sptr());
      done.wait();
      return result;
    }),
              1);
  }
  rt.wait_idle();
  EXPECT_EQ(rt.stats().live_frames, 0);
}

TEST(slots, named_by_nobody_may_be_signalled) {
  runtime rt(with_workers(1));
  rt.run([] {
    const slot_ptr nowhere;
    EXPECT_FALSE(nowhere);
    sync(nowhere);
    incr_sync(nowhere);
  });
}

TEST(completions, await_any_number_of_signals) {
  runtime rt(with_workers(4));
  for (const std::uint32_t count : {1U, 2U, 7U, 1000U}) {
    rt.run([count] {
      completion done(count);
      EXPECT_EQ(done.count(), count);
      for (std::uint32_t i = 0; i < count; ++i) {
        i % 2 == 0 ? sync(done.sptr()) : token<signaller>(done.sptr(), 1, slot_ptr());
      }
      done.wait();
      EXPECT_EQ(done.count(), 0u);
    });
  }
}

TEST(completions, may_be_complete_before_they_are_awaited) {
  runtime rt(with_workers(1));
  rt.run([] {
    completion done;
    sync(done.sptr());
    done.wait();
    completion refuses;
    sync(refuses.sptr());
    EXPECT_THROW(sync(refuses.sptr()), misuse_error);
    refuses.wait();
  });
}

TEST(completions, of_no_signals_are_complete) {
  runtime rt(with_workers(1));
  rt.run([] {
    const std::vector<int> children;
    completion done(static_cast<std::uint32_t>(children.size()));
    done.wait();
    EXPECT_THROW(sync(done.sptr()), misuse_error);
    completion later;
    later.init(0);
    later.wait();
  });
}

TEST(completions, await_signals_again) {
  for (const unsigned workers : {1U, 4U}) {
    runtime rt(with_workers(workers));
    rt.run([] {
      completion done(2);
      for (std::uint32_t round = 0; round < scaled(2'000U, 200U); ++round) {
        for (std::uint32_t i = 0; i < 2 + round % 3; ++i)
          token<signaller>(done.sptr(), 1, slot_ptr());
        done.wait();
        EXPECT_EQ(done.count(), 0u);
        done.wait();  // at once
        done.init(2 + (round + 1) % 3);
      }
    });
    rt.wait_idle();
    EXPECT_EQ(rt.stats().live_frames, 0);
  }
}

TEST(completions, may_be_signalled_by_another_runtime) {
  for (const unsigned workers : {1U, 2U}) {
    runtime rt(with_workers(workers));
    runtime other(with_workers(workers));
    for (int round = 0; round < scaled(200, 50); ++round) {
      rt.run([&] {
        const void* const home = detail::this_worker().owner;
        completion done(2);
        other.submit([&] { sync(done.sptr()); });
        other.submit([&] { token<signaller>(done.sptr(), 1, slot_ptr()); });
        done.wait();
        EXPECT_EQ(detail::this_worker().owner, home);
        EXPECT_EQ(fork2join([] { return 1; }, [] { return 2; }), std::pair(1, 2));
      });
    }
    other.wait_idle();
    EXPECT_EQ(other.stats().total().resumptions, 0u);
    EXPECT_EQ(rt.stats().total().resumptions, rt.stats().total().suspensions);
  }
}

TEST(completions, many_tasks_wait_for_many) {
  runtime rt(with_workers(8));
  rt.run([] {
    struct tree {
      static long sum(int depth) {
        if (depth == 0) {
          completion done(3);
          for (int i = 0; i < 3; ++i) token<signaller>(done.sptr(), 1, slot_ptr());
          done.wait();
          return 1;
        }
        auto [a, b] = fork2join([=] { return sum(depth - 1); }, [=] { return sum(depth - 1); });
        return a + b;
      }
    };
    EXPECT_EQ(tree::sum(scaled(10, 7)), 1 << scaled(10, 7));
  });
  rt.wait_idle();
  EXPECT_EQ(rt.stats().live_frames, 0);
}

struct ends_what_was_signalled : threaded {
  slot_ptr done;
  void start() {
    {
      completion mine;
      sync(mine.sptr());
    }
    sync(done);
    terminate();
  }
};

// Where what follows has failed, say. One that has had its signals is queued at a worker, by its
// address.
TEST(completions, may_end_unawaited) {
  for (const unsigned workers : {1U, 2U}) {
    runtime rt(with_workers(workers));
    rt.run([] {
      alignas(completion) std::array<std::byte, sizeof(completion)> place;
      for (int i = 0; i < 100; ++i) {
        auto* const ended = new (place.data()) completion;
        sync(ended->sptr());
        std::destroy_at(ended);
        place.fill(std::byte());  // by what has its memory then
        completion other;
        token<signaller>(other.sptr(), 1, slot_ptr());
        other.wait();
      }
      const completion never_signalled;
    });
  }
}

TEST(completions_death, end_only_where_somebody_may_wait) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        runtime alone(with_workers(1));
        alone.run([] {
          completion ended;
          invoke<ends_what_was_signalled>(on_node{0}, ended.sptr());
          ended.wait();
        });
      },
      "a fiber must not block");
}

TEST(completions, outside_a_runtime_are_misuse) {
  completion done;
  try {
    static_cast<void>(done.sptr());
    FAIL() << "no error";
  } catch (const misuse_error& e) {
    EXPECT_NE(std::string(e.what()).find("runtime::run()"), std::string::npos) << e.what();
  }
  EXPECT_THROW(done.wait(), misuse_error);
}

}  // namespace
}  // namespace strata::test
