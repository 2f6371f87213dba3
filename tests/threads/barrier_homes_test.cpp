// SPDX-License-Identifier: Apache-2.0
// A barrier is used in another runtime than that in which it was made, or outlives that.
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "../sched/support.hpp"
#include "sched/scheduler.hpp"
#include "strata/semaphore.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

// As runtime::run().
template <class F>
void run_in(detail::scheduler& s, F&& f) {
  detail::root_call<F> root(f);
  EXPECT_EQ(s.enter(root), nullptr);
  root.out.take();
}

using room = std::aligned_storage_t<sizeof(detail::scheduler), alignof(detail::scheduler)>;

// Another number of workers, at the same address.
TEST(barrier, knows_its_runtime_from_the_next_one_in_its_place) {
  const auto there = std::make_unique<room>();
  auto* const at = reinterpret_cast<detail::scheduler*>(there.get());
  std::optional<barrier<>> both;
  std::construct_at(at, with_workers(1));
  run_in(*at, [&] { both.emplace(2); });
  std::destroy_at(at);

  std::construct_at(at, with_workers(2));
  std::atomic<int> begun{0}, passed{0};
  const auto meet = [&] {
    run_in(*at, [&] {
      ++begun;
      spin_until([&] { return begun == 2; });  // each in a worker of its own
      for (int i = 0; i < 10; ++i) both->arrive_and_wait();
      ++passed;
    });
  };
  std::thread other(meet);
  meet();
  other.join();
  EXPECT_EQ(passed, 2);
  std::destroy_at(at);
}

// Where it was is somebody else's memory.
TEST(barrier, finds_nobody_whose_runtime_has_ended) {
  const auto there = std::make_unique<room>();
  auto* const at = reinterpret_cast<detail::scheduler*>(there.get());
  std::construct_at(at, with_workers(1));
  std::optional<barrier<>> both;
  run_in(*at, [&] {
    both.emplace(2);
    thread([&] {
      both->arrive_and_wait();
      ADD_FAILURE() << "its runtime has ended";
    }).detach();
  });
  std::destroy_at(at);
  std::memset(there.get(), 0, sizeof *there);

  (void)both->arrive();
  std::thread other([&] { both->arrive_and_wait(); });
  both->arrive_and_wait();
  other.join();
}

// Those who wait go on or do not.
TEST(barrier, is_passed_while_a_runtime_ends) {
  constexpr int many = 40;
  for (int round = 0; round < scaled(500, 100); ++round) {
    std::optional<barrier<>> all;
    std::atomic<bool> begins{false};
    std::thread last;
    {
      runtime rt(with_workers(1));
      rt.run([&] {
        all.emplace(many + 1);
        for (int i = 0; i < many; ++i) thread([&] { all->arrive_and_wait(); }).detach();
      });
      last = std::thread([&] {
        begins = true;
        (void)all->arrive();
      });
      spin_until(begins);
    }
    last.join();
  }
}

}  // namespace
}  // namespace strata::test
