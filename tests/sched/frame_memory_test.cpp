// SPDX-License-Identifier: Apache-2.0
// Frames' memory serves blocks of any size one after the other, and is given back when nobody needs
// it.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "os/futex.hpp"
#include "sched/frame_depot.hpp"
#include "sched/scheduler.hpp"
#include "strata/task_scope.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

using detail::frame_chunks;
using detail::frame_depot;
using detail::frame_pool;

constexpr std::size_t round_bytes = std::size_t{8} << 20;
// What pools keep of a size, and chunks that are in use for the sake of few blocks.
constexpr std::size_t besides = round_bytes / 4;

// So many blocks of `bytes` that they take `all`.
std::vector<void*> take_many(frame_pool& pool, std::size_t bytes, std::size_t all = round_bytes) {
  std::vector<void*> blocks;
  for (std::size_t n = all / bytes; n != 0; --n) blocks.push_back(pool.allocate(bytes));
  return blocks;
}
void give_all(frame_pool& pool, const std::vector<void*>& blocks, std::size_t bytes) {
  for (void* const b : blocks) pool.deallocate(b, bytes);
}

TEST(frame_memory, of_one_size_becomes_that_of_another) {
  frame_depot depot;
  frame_pool pool(depot);
  for (const std::size_t bytes : {32U, 96U, 160U, 256U, 448U, 1024U, 64U}) {
    const std::vector<void*> blocks = take_many(pool, bytes);
    EXPECT_GE(depot.bytes(), round_bytes);
    EXPECT_LE(depot.bytes(), round_bytes + besides) << bytes;
    give_all(pool, blocks, bytes);
  }
}

// Given back in any order and to either of two pools, each of which keeps some, in any chunk.
TEST(frame_memory, is_each_owners_own_whoever_gives_it_back) {
  frame_depot depot;
  frame_pool one(depot), other(depot);
  prng random(seed());
  for (const std::size_t bytes : {128U, 192U, 128U, 512U}) {
    std::vector<void*> blocks = take_many(one, bytes);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      std::memset(blocks[i], static_cast<int>(i % 251), bytes);
      std::swap(blocks[i], blocks[random.below(i + 1)]);
    }
    std::array<std::size_t, 251> seen{};
    for (void* const b : blocks) {
      const auto* const content = static_cast<const unsigned char*>(b);
      ASSERT_EQ(content[0], content[bytes - 1]);
      ++seen[content[0]];
      (random.below(2) == 0 ? one : other).deallocate(b, bytes);
    }
    for (std::size_t i = 0; i < seen.size(); ++i)
      ASSERT_EQ(seen[i], (blocks.size() + 250 - i) / 251) << "a block was somebody else's";
  }
  EXPECT_EQ(one.live() + other.live(), 0);
  EXPECT_LE(depot.bytes(), 3 * round_bytes + besides) << "a size finds its memory again";
}

TEST(frame_memory, is_given_back_when_it_was_not_needed_for_a_time) {
  constexpr std::int64_t second = 1'000'000'000;
  frame_depot depot;
  frame_pool pool(depot);
  EXPECT_EQ(depot.tidy(second), os::futex_forever_ns) << "there is none";
  constexpr std::size_t bytes = 64;
  std::vector<void*> blocks = take_many(pool, bytes);
  EXPECT_EQ(depot.tidy(2 * second), os::futex_forever_ns) << "all is in use";
  give_all(pool, blocks, bytes);
  EXPECT_FALSE(depot.is_tidy());
  const std::size_t most = depot.bytes();
  EXPECT_EQ(depot.tidy(10 * second), second) << "a time begins";
  blocks = take_many(pool, bytes, round_bytes / 2);
  EXPECT_EQ(depot.tidy(11 * second - 1), 1);
  EXPECT_EQ(depot.bytes(), most);
  give_all(pool, blocks, bytes);
  std::int64_t now = 11 * second;
  const auto tidy = [&] {
    std::int64_t next = 0;
    while ((next = depot.tidy(now)) == 0) {
    }
    return next;
  };
  EXPECT_EQ(tidy(), second) << "half of it was needed";
  EXPECT_GE(depot.bytes(), most / 2 - besides);
  EXPECT_LE(depot.bytes(), most / 2 + besides);
  now += second;
  EXPECT_EQ(tidy(), os::futex_forever_ns);
  EXPECT_TRUE(depot.is_tidy());
  EXPECT_LE(depot.bytes(), besides);
}

template <std::size_t Bytes>
void spawn_children(task_scope& scope) {
  for (std::size_t n = round_bytes / Bytes; n != 0; --n)
    scope.spawn([room = std::array<char, Bytes - 32>()] { static_cast<void>(room); });
  scope.sync();
}

TEST(frame_memory, is_given_back_while_everybody_sleeps) {
  runtime rt(with_workers(2));
  frame_depot* depot = nullptr;
  rt.run([&] {
    depot = &detail::this_worker().owner->depot;
    depot->forget_after(1'000'000);
    task_scope scope;
    spawn_children<128>(scope);
    spawn_children<256>(scope);
    spawn_children<512>(scope);
  });
  spin_until([&] { return depot->is_tidy(); });
  EXPECT_LE(depot->bytes(), besides);
}

}  // namespace
}  // namespace strata::test
