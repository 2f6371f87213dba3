// SPDX-License-Identifier: Apache-2.0
// The containers of one worker, against the obvious models.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <set>
#include <vector>

#include "sched/frame_depot.hpp"
#include "strata/detail/frame_pool.hpp"
#include "strata/detail/ready_queue.hpp"
#include "strata/detail/worker.hpp"
#include "support.hpp"
#include "sync/spsc_queue.hpp"

namespace strata::test {
namespace {

using detail::frame_depot;
using detail::frame_pool;
using detail::ready_queue;
using detail::task;

TEST(counter, adds) {
  detail::counter c;
  EXPECT_EQ(c.read(), 0u);
  c.add();
  c.add(41);
  EXPECT_EQ(c.read(), 42u);
}

TEST(ready_queue, behaves_like_a_deque) {
  prng random(seed());
  std::vector<task> tasks(1000);
  for (int round = 0; round < 50; ++round) {
    ready_queue queue;
    std::deque<task*> model;
    // Grows and shrinks in turns, so that the ring wraps at every size.
    for (int step = 0; step < 2000; ++step) {
      task* const t = &tasks[random.below(tasks.size())];
      const bool growing = step / 300 % 2 == 0;
      switch (random.below(growing ? 6 : 10)) {
        case 0:
        case 1:
          queue.push(t);
          model.push_back(t);
          break;
        case 2:
          queue.push_front(t);
          model.push_front(t);
          break;
        case 3: {
          const std::size_t n = random.below(step % 100 == 0 ? 200 : 3);
          task* const some = &tasks[random.below(tasks.size() - n)];
          const auto next = [&](task& one) { return &one + 1 != some + n ? &one + 1 : nullptr; };
          ASSERT_EQ(queue.push_all(n != 0 ? some : nullptr, next), nullptr);
          for (std::size_t i = 0; i < n; ++i) model.push_back(some + i);
          break;
        }
        case 4: {
          // Every other task is one that is not wanted.
          const auto wanted = [&](const task& first) { return (&first - tasks.data()) % 2 == 0; };
          task* const expected = model.empty() || !wanted(*model.front()) ? nullptr : model.front();
          ASSERT_EQ(queue.begin_rotation(t, wanted, SIZE_MAX, [](auto...) {}), expected);
          queue.end_rotation();
          if (expected != nullptr) {
            model.pop_front();
            model.push_back(t);
          }
          break;
        }
        default:
          task* const expected = model.empty() ? nullptr : model.front();
          if (!model.empty()) model.pop_front();
          ASSERT_EQ(queue.pop(), expected);
      }
      ASSERT_EQ(queue.empty(), model.empty());
    }
    while (!model.empty()) {
      ASSERT_EQ(queue.pop(), model.front());
      model.pop_front();
    }
    ASSERT_EQ(queue.pop(), nullptr);
  }
}

// Wherever its blocks begin and end.
TEST(spsc_queue, can_be_looked_into) {
  detail::spsc_queue<int> q;
  std::vector<int> items(300);
  const auto copy = [](void* to, const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
    return true;
  };
  std::size_t pushed = 0;
  std::size_t popped = 0;
  for (const std::size_t first : {0U, 1U, 61U, 62U, 63U, 124U, 200U, 299U, 300U}) {
    while (pushed < items.size() && pushed < first + 130) q.push(&items[pushed++]);
    for (; popped < first; ++popped) ASSERT_EQ(q.pop(), &items[popped]);
    std::vector<int*> seen(q.size() + 1);
    ASSERT_EQ(q.peek(seen.data(), seen.size(), copy), pushed - popped);
    for (std::size_t i = popped; i < pushed; ++i) ASSERT_EQ(seen[i - popped], &items[i]);
  }
}

TEST(ready_queue, lets_no_thief_in_during_a_rotation) {
  if (!detail::asymmetric_fences::available()) GTEST_SKIP() << "no thief comes in at all";
  task first, second, mine;
  const auto any = [](const task&) { return true; };
  task* fetched = nullptr;
  const auto fetch = [&](const task* next, const task*) { fetched = const_cast<task*>(next); };
  ready_queue queue;
  queue.push(&first);
  queue.push(&second);
  ASSERT_EQ(queue.begin_rotation(&mine, any, 1, fetch), &first);
  EXPECT_EQ(fetched, &second);
  task* taken[4];
  EXPECT_EQ(queue.take_half(taken, 4), 0u);
  queue.end_rotation();
  ASSERT_EQ(queue.take_half(taken, 4), 1u);
  EXPECT_EQ(taken[0], &second);
  EXPECT_EQ(queue.pop(), &mine);
}

TEST(frame_pool, gives_each_block_to_one_owner) {
  prng random(seed());
  frame_depot depot;
  frame_pool pool(depot);
  struct block {
    unsigned char* bytes;
    std::size_t size;
    unsigned char content;
  };
  std::vector<block> living;
  for (int step = 0; step < 20'000; ++step) {
    if (living.empty() || random.below(100) < 52) {
      const std::size_t size = 1 + random.below(1500);  // some are too large for the pool
      block b{static_cast<unsigned char*>(pool.allocate(size)), size,
              static_cast<unsigned char>(random.below(256))};
      const bool whole_lines = (size + 31) / 32 % 2 == 0 && size <= frame_pool::pooled_bytes_max;
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(b.bytes) % (whole_lines ? 64 : 16), 0u);
      std::memset(b.bytes, b.content, b.size);
      living.push_back(b);
    } else {
      std::swap(living[random.below(living.size())], living.back());
      const block b = living.back();
      living.pop_back();
      for (std::size_t i = 0; i < b.size; ++i) ASSERT_EQ(b.bytes[i], b.content);
      pool.deallocate(b.bytes, b.size);
    }
    ASSERT_EQ(pool.live(), static_cast<std::int64_t>(living.size()));
  }
  for (const block& b : living) pool.deallocate(b.bytes, b.size);
  EXPECT_EQ(pool.live(), 0);
}

TEST(frame_pool, uses_blocks_again_newest_first) {
  frame_depot depot;
  frame_pool pool(depot);
  void* const first = pool.allocate(100);
  void* const second = pool.allocate(100);
  pool.deallocate(first, 100);
  pool.deallocate(second, 100);
  EXPECT_EQ(pool.allocate(100), second);
  EXPECT_EQ(pool.allocate(97), first);  // the same class of sizes
  pool.deallocate(first, 97);
  pool.deallocate(second, 100);
}

// One worker makes what the other ends: blocks must come back, or memory grows for ever.
TEST(frame_pool, blocks_return_from_another_pool) {
  frame_depot depot;
  frame_pool maker(depot);
  frame_pool ender(depot);
  constexpr std::size_t bytes = 160;
  constexpr int at_once = 1000;
  std::set<void*> distinct;
  std::vector<void*> blocks;
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < at_once; ++i) blocks.push_back(maker.allocate(bytes));
    distinct.insert(blocks.begin(), blocks.end());
    for (void* b : blocks) ender.deallocate(b, bytes);
    blocks.clear();
  }
  EXPECT_EQ(maker.live() + ender.live(), 0);
  EXPECT_EQ(maker.live(), 200 * at_once);
  // What is out at once, and what either pool may keep.
  EXPECT_LE(distinct.size(), 3000u);
}

TEST(frame_pool, every_size_up_to_the_largest_has_room) {
  frame_depot depot;
  frame_pool pool(depot);
  std::vector<unsigned char*> blocks;
  for (std::size_t size = 1; size <= frame_pool::pooled_bytes_max + 64; ++size) {
    auto* b = static_cast<unsigned char*>(pool.allocate(size));
    std::memset(b, static_cast<int>(size % 251), size);
    blocks.push_back(b);
  }
  for (std::size_t size = blocks.size(); size >= 1; --size) {
    unsigned char* const b = blocks[size - 1];
    ASSERT_EQ(b[0], size % 251);
    ASSERT_EQ(b[size - 1], size % 251);
    pool.deallocate(b, size);
  }
  EXPECT_EQ(pool.live(), 0);
}

}  // namespace
}  // namespace strata::test
