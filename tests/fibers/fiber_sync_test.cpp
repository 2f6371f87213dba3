// SPDX-License-Identifier: Apache-2.0
// Lock, semaphore, I-structure, channel and reduction box, each under load.
#include "strata/fiber_sync.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "../sched/support.hpp"

namespace strata::test {
namespace {

class fiber_sync_workers : public leaves_no_frame {};
INSTANTIATE_TEST_SUITE_P(workers, fiber_sync_workers, ::testing::Values(1, 2, 4, 8),
                         ::testing::PrintToStringParamName());

// Takes the lock `times` times and changes an unprotected counter under it.
struct locker : threaded {
  fiber_lock* lock;
  long* counter;
  int times;
  slot_ptr done;
  void start() { lock->acquire(to_sptr(GRANTED)); }
  void granted() {
    *counter = *counter + 1;
    lock->release();
    if (--times > 0) return lock->acquire(to_sptr(GRANTED));
    sync(done);
    terminate();
  }
  fiber<&locker::granted> GRANTED{this, 1, 1};
};

TEST_P(fiber_sync_workers, lock_excludes) {
  constexpr int fibers = 50;
  constexpr int times = scaled(200, 20);
  fiber_lock lock;
  long counter = 0;
  rt.run([&] {
    completion done(fibers);
    for (int i = 0; i < fibers; ++i) token<locker>(&lock, &counter, times, done.sptr());
    done.wait();
  });
  EXPECT_EQ(counter, fibers * times);
  EXPECT_TRUE(lock.try_acquire());
  EXPECT_FALSE(lock.try_acquire());
}

struct permit_holder : threaded {
  fiber_semaphore* semaphore;
  std::atomic<int>* inside;
  std::atomic<int>* most;
  int times;
  slot_ptr done;
  void start() { semaphore->acquire(to_sptr(GRANTED)); }
  void granted() {
    const int now = ++*inside;
    int seen = *most;
    while (seen < now && !most->compare_exchange_weak(seen, now)) {
    }
    // Holds the permit while other fibers run.
    token<permit_returner>(semaphore, inside, to_sptr(RETURNED));
  }
  void returned() {
    if (--times > 0) return semaphore->acquire(to_sptr(GRANTED));
    sync(done);
    terminate();
  }
  struct permit_returner : threaded {
    fiber_semaphore* semaphore;
    std::atomic<int>* inside;
    slot_ptr returned;
    void start() {
      --*inside;
      semaphore->release();
      sync(returned);
      terminate();
    }
  };
  fiber<&permit_holder::granted> GRANTED{this, 1, 1};
  fiber<&permit_holder::returned> RETURNED{this, 1, 1};
};

TEST_P(fiber_sync_workers, semaphore_hands_out_its_permits_and_no_more) {
  constexpr int fibers = 40;
  constexpr int times = scaled(100, 15);
  for (const std::uint64_t permits : {1U, 3U, 10U}) {
    fiber_semaphore semaphore(permits);
    std::atomic<int> inside{0};
    std::atomic<int> most{0};
    rt.run([&] {
      completion done(fibers);
      for (int i = 0; i < fibers; ++i) {
        token<permit_holder>(&semaphore, &inside, &most, times, done.sptr());
      }
      done.wait();
    });
    EXPECT_EQ(inside, 0);
    EXPECT_LE(most, static_cast<int>(permits));
    EXPECT_GE(most, 1);
    for (std::uint64_t i = 0; i < permits; ++i) EXPECT_TRUE(semaphore.try_acquire());
    EXPECT_FALSE(semaphore.try_acquire());
  }
}

// A table of I-structures: each is computed from the two before it, in any order.
using table = std::vector<i_structure<std::uint64_t>>;
struct cell : threaded {
  table* all;
  std::size_t index;
  slot_ptr done;
  std::uint64_t a, b;
  void start() {
    if (index < 2) {
      a = index;
      b = 0;
      sync(to_sptr(KNOWN));
      sync(to_sptr(KNOWN));
    } else {
      (*all)[index - 1].get(to_global(&a), to_sptr(KNOWN));
      (*all)[index - 2].get(to_global(&b), to_sptr(KNOWN));
    }
  }
  void known() {
    (*all)[index].put(a + b);
    sync(done);
    terminate();
  }
  fiber<&cell::known> KNOWN{this, 2};
};

TEST_P(fiber_sync_workers, i_structures_answer_reads_before_and_after) {
  constexpr std::size_t n = 90;
  prng random(seed());
  for (int round = 0; round < scaled(40, 10); ++round) {
    table all(n);
    std::vector<std::size_t> order(n);
    for (std::size_t i = 0; i < n; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), std::mt19937_64(random()));
    const std::uint64_t value = rt.run([&] {
      std::uint64_t last = 0;
      completion done(n + 1);
      all[n - 1].get(to_global(&last), done.sptr());
      for (const std::size_t i : order) token<cell>(&all, i, done.sptr());
      done.wait();
      return last;
    });
    EXPECT_EQ(value, 1779979416004714189U);  // the 89th Fibonacci number
  }
}

struct producer : threaded {
  channel<std::uint64_t>* to;
  std::uint64_t first;
  std::uint64_t count;
  void start() {
    for (std::uint64_t i = 0; i < count; ++i) to->send(first + i);
    terminate();
  }
};
struct consumer : threaded {
  channel<std::uint64_t>* from;
  std::atomic<int>* seen;
  int times;
  slot_ptr done;
  std::uint64_t value;
  void start() { from->receive(to_global(&value), to_sptr(RECEIVED)); }
  void received() {
    ++seen[value];
    if (--times > 0) return from->receive(to_global(&value), to_sptr(RECEIVED));
    sync(done);
    terminate();
  }
  fiber<&consumer::received> RECEIVED{this, 1, 1};
};

TEST_P(fiber_sync_workers, channel_delivers_each_value_once) {
  constexpr std::uint64_t producers = 10;
  constexpr std::uint64_t each = scaled(400, 60);
  constexpr int consumers = 20;
  std::vector<std::atomic<int>> seen(producers * each);
  rt.run([&] {
    channel<std::uint64_t> values;
    completion done(consumers);
    for (int i = 0; i < consumers; ++i) {
      token<consumer>(&values, seen.data(), static_cast<int>(producers * each / consumers),
                      done.sptr());
    }
    for (std::uint64_t p = 0; p < producers; ++p) token<producer>(&values, p * each, each);
    done.wait();
  });
  for (const auto& s : seen) ASSERT_EQ(s, 1);
}

struct plus {
  std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return a + b; }
};
using sum_box = reduction_box<std::uint64_t, plus>;
struct contributor : threaded {
  sum_box* box;
  std::uint64_t from, to;
  void start() {
    for (std::uint64_t i = from; i < to; ++i) box->contribute(i);
    terminate();
  }
};

TEST_P(fiber_sync_workers, reduction_box_combines_everything_once) {
  constexpr std::uint64_t fibers = 20;
  constexpr std::uint64_t each = scaled(500, 60);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t sum = rt.run([&] {
      std::uint64_t result = 0;
      completion done;
      const auto box =
          std::make_unique<sum_box>(fibers * each, 0U, plus{}, to_global(&result), done.sptr());
      for (std::uint64_t i = 0; i < fibers; ++i) {
        token<contributor>(box.get(), i * each, (i + 1) * each);
      }
      done.wait();
      // Nobody uses the box any more.
      return result;
    });
    EXPECT_EQ(sum, (fibers * each) * (fibers * each - 1) / 2);
  }
}

class fiber_sync : public ::testing::Test {
 protected:
  runtime rt{with_workers(1)};
};

TEST_F(fiber_sync, permits_go_to_who_waited_longest) {
  rt.run([] {
    fiber_semaphore semaphore(0);
    completion first;
    completion second;
    EXPECT_FALSE(semaphore.try_acquire());
    semaphore.acquire(first.sptr());
    semaphore.acquire(second.sptr());
    semaphore.release();
    EXPECT_EQ(first.count(), 0u);
    EXPECT_EQ(second.count(), 1u);
    semaphore.release();
    EXPECT_EQ(second.count(), 0u);
    semaphore.release();
    EXPECT_TRUE(semaphore.try_acquire());
    first.wait();
    second.wait();
  });
}

TEST_F(fiber_sync, i_structures_are_written_once) {
  rt.run([] {
    i_structure<int> cell;
    cell.put(1);
    EXPECT_THROW(cell.put(2), misuse_error);
    int value = 0;
    completion done;
    cell.get(to_global(&value), done.sptr());
    done.wait();
    EXPECT_EQ(value, 1);
  });
}

TEST_F(fiber_sync, channels_keep_the_order) {
  rt.run([] {
    channel<int> values;
    std::array<int, 4> got{};
    completion done(4);
    values.receive(to_global(&got[0]), done.sptr());
    values.receive(to_global(&got[1]), done.sptr());
    for (int i = 1; i <= 4; ++i) values.send(i);
    values.receive(to_global(&got[2]), done.sptr());
    values.receive(to_global(&got[3]), done.sptr());
    done.wait();
    EXPECT_EQ(got, (std::array{1, 2, 3, 4}));
  });
}

TEST_F(fiber_sync, reduction_boxes_refuse_too_much) {
  rt.run([] {
    std::uint64_t result = 0;
    completion done;
    EXPECT_THROW(sum_box(0, 0U, plus{}, to_global(&result), done.sptr()), misuse_error);
    sum_box box(1, 5U, plus{}, to_global(&result), done.sptr());
    box.contribute(2);
    EXPECT_THROW(box.contribute(1), misuse_error);
    done.wait();
    EXPECT_EQ(result, 7u);
  });
}

class fiber_sync_errors : public ::testing::Test {
 protected:
  // A slot that throws when it is signalled.
  static slot_ptr refusing(completion& used) {
    sync(used.sptr());
    used.wait();
    return used.sptr();
  }
  runtime rt{with_workers(2)};
};

TEST_F(fiber_sync_errors, a_read_that_cannot_be_answered_keeps_no_other_from_its_value) {
  rt.run([] {
    i_structure<int> value;
    std::array<int, 2> got{};
    completion nobody, first, last;
    value.get(to_global(&got[0]), first.sptr());
    value.get({}, nobody.sptr());
    value.get(to_global(&got[1]), last.sptr());
    EXPECT_THROW(value.put(3), misuse_error);
    ASSERT_EQ(got, (std::array<int, 2>{3, 3}));
    first.wait();
    last.wait();
    EXPECT_THROW(value.put(4), misuse_error) << "it has been written";
  });
}

TEST_F(fiber_sync_errors, a_permit_goes_to_the_next_who_can_be_told_or_is_kept) {
  rt.run([] {
    fiber_semaphore semaphore(0);
    completion used, granted;
    const slot_ptr refuses = refusing(used);
    semaphore.acquire(refuses);
    EXPECT_THROW(semaphore.release(), misuse_error);
    ASSERT_TRUE(semaphore.try_acquire());
    EXPECT_FALSE(semaphore.try_acquire());
    semaphore.acquire(refuses);
    semaphore.acquire(refuses);
    semaphore.acquire(granted.sptr());
    EXPECT_THROW(semaphore.release(), misuse_error);
    granted.wait();
    EXPECT_FALSE(semaphore.try_acquire());
  });
}

TEST_F(fiber_sync_errors, a_permit_that_is_released_where_nobody_can_be_told_is_not) {
  fiber_lock lock;
  completion granted;
  ASSERT_TRUE(lock.try_acquire());
  rt.run([&] { lock.acquire(granted.sptr()); });
  EXPECT_THROW(lock.release(), misuse_error) << "outside the runtime";
  rt.run([&] {
    lock.release();
    granted.wait();
  });
}

}  // namespace
}  // namespace strata::test
