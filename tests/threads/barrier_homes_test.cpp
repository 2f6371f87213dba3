// SPDX-License-Identifier: Apache-2.0
// A barrier is used in another runtime than that in which it was made.
#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "../sched/support.hpp"
#include "sched/scheduler.hpp"
#include "strata/semaphore.hpp"

namespace strata::test {
namespace {

// As runtime::run().
template <class F>
void run_in(detail::scheduler& s, F&& f) {
  detail::root_call<F> root(f);
  EXPECT_EQ(s.enter(root), nullptr);
  root.out.take();
}

// Another number of workers, at the same address.
TEST(barrier, knows_its_runtime_from_the_next_one_in_its_place) {
  const auto room = std::make_unique<
      std::aligned_storage_t<sizeof(detail::scheduler), alignof(detail::scheduler)>>();
  auto* const at = reinterpret_cast<detail::scheduler*>(room.get());
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

}  // namespace
}  // namespace strata::test
