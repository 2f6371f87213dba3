// SPDX-License-Identifier: Apache-2.0
// A child or token for which there is no memory in the queue is refused, and was never there.
#include <atomic>
#include <new>

#include "../common/refused_new.hpp"
#include "strata/call.hpp"
#include "strata/fiber.hpp"
#include "strata/task_scope.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

// More fit into no deque. Then a list of the others begins, with room for one: for that there is no
// memory.
constexpr int fewer_than_fit = 8000;
constexpr std::size_t list_of_one = sizeof(detail::task*);

// Returns how many could be made.
template <class Make>
int make_until_refused(const Make& make) {
  int made = 0;
  const refused_new no_list(0, list_of_one);
  try {
    for (;; ++made) make();
  } catch (const std::bad_alloc&) {
  }
  return made;
}

template <class Spawn>
void refuse_children(const Spawn& spawn) {
  runtime rt(with_workers(1));
  rt.run([&] {
    task_scope scope;
    // So much is in the pool of blocks then.
    for (int i = 0; i < fewer_than_fit; ++i) spawn(scope);
    scope.sync();
    const int made = make_until_refused([&] { spawn(scope); });
    EXPECT_GE(made, fewer_than_fit);
    scope.sync();
  });
  rt.wait_idle();
  EXPECT_EQ(rt.stats().live_frames, 0);
}

TEST(without_memory_for_its_place, a_child_is_not_awaited) {
  int ran = 0;
  refuse_children([&](task_scope& scope) { scope.spawn([&ran, object = tracked(1)] { ++ran; }); });
  EXPECT_GE(ran, 2 * fewer_than_fit);
  EXPECT_EQ(tracked::living(), 0);
  refuse_children(
      [&](task_scope& scope) { (void)scope.spawn([object = tracked(1)] { return 1; }); });
  EXPECT_EQ(tracked::living(), 0);
}

int one() { return 1; }

TEST(without_memory_for_its_place, a_call_is_not_awaited) {
  refuse_children([](task_scope& scope) { (void)scope.spawn(call<one>()); });
}

std::atomic<int> tokens_ran{0};
struct counting : threaded {
  void start() {
    ++tokens_ran;
    terminate();
  }
};

TEST(without_memory_for_its_place, a_token_is_gone) {
  runtime rt(with_workers(1));
  int made = 0;
  rt.run([&] {
    for (int i = 0; i < fewer_than_fit; ++i) token<counting>();
  });
  rt.wait_idle();
  rt.run([&] { made = make_until_refused([] { token<counting>(); }); });
  rt.wait_idle();
  EXPECT_EQ(tokens_ran, fewer_than_fit + made);
  EXPECT_EQ(rt.stats().live_frames, 0);
}

}  // namespace
}  // namespace strata::test
