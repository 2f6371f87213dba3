// SPDX-License-Identifier: Apache-2.0
// Stacks: how deep they were used, what lies unused gives its memory back, what happens without
// guard pages and without more stacks.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>
#include <system_error>
#include <thread>
#include <vector>

#include "../sched/support.hpp"
#include "context/stack_pool.hpp"
#include "os/pages.hpp"
#include "strata/error.hpp"
#include "strata/semaphore.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

using detail::stack;
using detail::stack_pool;

constexpr std::size_t kib = 1024;

void entry(void*) {}

void touch(const stack& s, std::size_t bytes) {
  auto* const top = static_cast<volatile std::byte*>(s.sp);
  for (std::size_t i = 256; i < bytes; i += os::page_bytes() / 2) top[-static_cast<long>(i)] = {};
}

TEST(stacks, remember_how_deep_they_were_used) {
  stack_pool pool(256 * kib, &entry);
  stack* const shallow = pool.take();
  stack* const deep = pool.take();
  const std::size_t before = pool.measure().deepest;
  EXPECT_LE(before, 8 * kib);
  touch(*shallow, 10 * kib);
  touch(*deep, 100 * kib);
  EXPECT_GE(pool.measure().deepest, 96 * kib);
  EXPECT_LE(pool.measure().deepest, 112 * kib);
  EXPECT_GE(pool.measure().resident, 106 * kib);
}

TEST(stacks, give_memory_back_that_nobody_needs_for_a_second) {
  constexpr std::int64_t second = 1'000'000'000;
  stack_pool pool(64 * kib, &entry);
  std::vector<stack*> all;
  for (int i = 0; i < 20; ++i) all.push_back(pool.take());
  for (stack* s : all) {
    touch(*s, 40 * kib);
    pool.give(s);
  }
  const std::size_t before = pool.measure().resident;
  std::int64_t now = 1000 * second;
  pool.tidy(now);  // a period begins
  stack* const busy = pool.take();
  touch(*busy, 40 * kib);
  pool.give(busy);
  pool.tidy(now += second / 2);
  EXPECT_EQ(pool.measure().resident, before);
  pool.tidy(now += second);
  // All but the one that was used.
  EXPECT_LE(pool.measure().resident, before - 19 * (thread_sanitizer ? 36 : 40) * kib);
  EXPECT_GE(pool.measure().resident, 40 * kib);
  // What has been given back is still known, and the stacks still begin where they did.
  EXPECT_GE(pool.measure().deepest, 40 * kib);
  for (int i = 0; i < 20; ++i) {
    stack* const s = pool.take();
    std::uintptr_t saved[7];
    std::memcpy(saved, s->sp, sizeof saved);
    EXPECT_NE(saved[6] | saved[0], 0u);
    touch(*s, 40 * kib);
  }
  EXPECT_EQ(pool.taken_max(), 20u);
}

// Takes many: every one has a guard of its own, and few more are made ready than are taken.
void take_many(stack_pool& pool) {
  std::vector<stack*> all;
  for (std::size_t n = 1; n <= 1000; ++n) {
    all.push_back(pool.take());
    ASSERT_EQ(pool.taken_max(), n);
    ASSERT_EQ(pool.left(), pool.capacity() - n);
    ASSERT_GE(pool.cut(), n);
    ASSERT_LE(pool.cut() - n, n / 8);
  }
  for (const stack* s : all) {
    ASSERT_FALSE(s->unguarded);
    ASSERT_EQ(pool.guarding(static_cast<std::byte*>(s->bottom) - 1), s);
  }
  // Nobody's yet.
  for (std::size_t i = pool.taken_max(); i < pool.cut(); ++i)
    ASSERT_EQ(pool.guarding(pool.pieces.first + i * pool.pieces.stride), nullptr);
}

TEST(stacks, are_made_ready_together_the_more_there_are) {
  stack_pool pool(64 * kib, &entry);
  EXPECT_EQ((pool.take(), pool.cut()), 1u);
  stack_pool another(64 * kib, &entry);
  take_many(another);
  // A page each, taken or not, and nothing of the others.
  EXPECT_LE(another.measure().resident, another.cut() * os::page_bytes());
}

// From now on as if there were no such call. False: there are no filters here.
bool deny_process_madvise() {
  std::array<sock_filter, 4> filter{{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_madvise, 0, 1),
                                     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                                     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

[[noreturn]] void take_many_on_an_older_kernel() {
  if (deny_process_madvise()) {
    stack_pool pool(64 * kib, &entry);
    take_many(pool);
    EXPECT_EQ(pool.cut(), pool.taken_max());
  }
  std::_Exit(::testing::Test::HasFailure() ? 1 : 0);
}

TEST(stacks_death, are_made_ready_one_by_one_on_older_kernels) {
  if (thread_sanitizer || address_sanitizer) GTEST_SKIP() << "they make system calls of their own";
  EXPECT_EXIT(take_many_on_an_older_kernel(), ::testing::ExitedWithCode(0), "");
}

TEST(stacks, two_threads_take_all_there_are) {
  if (thread_sanitizer || address_sanitizer) GTEST_SKIP() << "too little address space";
  for (int round = 0; round < 20; ++round) {
    stack_pool pool(512 * 1024 * kib, &entry);
    std::atomic<unsigned> here{0};
    std::array<std::vector<stack*>, 2> taken;
    const auto take_all = [&](std::vector<stack*>& mine) {
      here.fetch_add(1);
      while (here.load() != 2) std::this_thread::yield();
      try {
        for (;;) mine.push_back(pool.take());
      } catch (const error&) {
        // Not one is left.
      }
    };
    std::thread other(take_all, std::ref(taken[1]));
    take_all(taken[0]);
    other.join();
    std::set<stack*> all(taken[0].begin(), taken[0].end());
    all.insert(taken[1].begin(), taken[1].end());
    EXPECT_EQ(all.size(), pool.capacity());
    EXPECT_EQ(taken[0].size() + taken[1].size(), pool.capacity());
    EXPECT_EQ(pool.left(), 0u);
  }
}

TEST(stacks, say_how_many_are_left) {
  stack_pool pool(1024 * 1024 * kib, &entry);
  const std::size_t all = pool.left();
  EXPECT_EQ(all, pool.capacity());
  stack* const s = pool.take();
  EXPECT_EQ(pool.left(), all - 1);
  pool.give(s);
  EXPECT_EQ(pool.left(), all);
}

TEST(stacks, without_a_guard_are_left_alone_when_nothing_happened) {
  stack_pool pool(32 * kib, &entry, false);
  stack* const s = pool.take();
  EXPECT_TRUE(s->unguarded);
  EXPECT_EQ(pool.guarding(static_cast<std::byte*>(s->bottom) - 1), nullptr);
  touch(*s, 8 * kib);
  EXPECT_LE(pool.measure().deepest, 16 * kib);  // the canary's page does not count
  pool.give(s);
  EXPECT_EQ(pool.take(), s);
}

TEST(stacks_death, without_a_guard_damage_is_found_when_the_stack_is_given_back) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        stack_pool pool(32 * kib, &entry, false);
        stack* const s = pool.take();
        std::memset(s->bottom, 1, 8);
        pool.give(s);
      },
      ::testing::ExitedWithCode(1),
      "no guard page .*memory below it is damaged.*--strata-stack-bytes=128K");
}

TEST(stacks, a_thread_too_many_is_refused_and_the_program_goes_on) {
  if (thread_sanitizer || address_sanitizer) GTEST_SKIP() << "too little address space";
  options o = with_workers(2);
  o.stack_bytes = std::size_t{1} << 30;
  runtime rt(o);
  rt.run([] {
    counting_semaphore<> never(0);
    std::vector<thread> all;
    const auto fill = [&] {
      std::errc why{};
      try {
        for (int i = 0; i < 1000; ++i) all.emplace_back([&] { never.acquire(); });
      } catch (const std::system_error& e) {
        why = static_cast<std::errc>(e.code().value());
        EXPECT_NE(std::strstr(e.what(), "--strata-stack-bytes"), nullptr) << e.what();
      }
      EXPECT_EQ(why, std::errc::resource_unavailable_try_again);
    };
    const auto empty = [&] {
      for (std::size_t i = 0; i < all.size(); ++i) never.release();
      for (thread& t : all) t.join();
      all.clear();
    };
    fill();
    const std::size_t first = all.size();
    EXPECT_GT(first, 10u);
    empty();
    fill();
    EXPECT_EQ(all.size(), first);
    empty();
  });
}

TEST(stacks, a_thread_with_a_stack_of_its_own_is_refused_when_there_is_none) {
  if (thread_sanitizer || address_sanitizer) GTEST_SKIP() << "too little address space";
  runtime rt(with_workers(1));
  rt.run([] {
    std::vector<thread> all;
    const thread_attributes huge{.name = "huge", .stack_bytes = std::size_t{1} << 30};
    std::errc why{};
    try {
      for (int i = 0; i < 1000; ++i) all.emplace_back(huge, [] {});
    } catch (const std::system_error& e) {
      why = static_cast<std::errc>(e.code().value());
    }
    EXPECT_EQ(why, std::errc::resource_unavailable_try_again);
    EXPECT_GT(all.size(), 10u);
    for (thread& t : all) t.join();
    thread(huge, [] {}).join();
  });
}

TEST(stacks, statistics_tell_the_deepest) {
  options o = with_workers(1);
  o.stats = true;
  runtime rt(o);
  rt.run([] {
    volatile char large[50 * kib];
    for (std::size_t i = 0; i < sizeof large; i += kib) large[i] = 1;
    EXPECT_EQ(large[0], 1);
  });
  const statistics s = rt.stats();
  EXPECT_GE(s.stack_bytes_deepest, 48 * kib);
  EXPECT_GE(s.stack_bytes_resident, 48 * kib);
  EXPECT_NE(s.to_text().find("deepest, KiB"), std::string::npos);
}

}  // namespace
}  // namespace strata::test
