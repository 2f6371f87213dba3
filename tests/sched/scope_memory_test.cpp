// SPDX-License-Identifier: Apache-2.0
// A child or token for which there is no memory in the queue is refused, and was never there. A
// scope keeps no results that have been read, or that nobody will read.
#include <atomic>
#include <new>
#include <utility>
#include <vector>

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

// spawn(scope) gives a handle of a `tracked`.
template <class Spawn>
void end_results(const Spawn& spawn) {
  runtime rt(with_workers(1));
  rt.run([&] {
    task_scope scope;
    const auto round = [&] {
      (void)spawn(scope);
      auto read = spawn(scope);
      auto read_and_kept = spawn(scope);
      { auto given_up = spawn(scope); }
      scope.sync();
      EXPECT_EQ(tracked::living(), 2) << "those that may be read";
      (void)read.get();
      (void)std::exchange(read_and_kept, std::move(read)).get();
      EXPECT_EQ(tracked::living(), 0);
      EXPECT_THROW(read_and_kept.get(), misuse_error);
    };
    round();
    const long before = refused_new::in_use();
    for (int i = 0; i < 100; ++i) round();
    EXPECT_EQ(refused_new::in_use(), before);
  });
}

TEST(results, end_when_nobody_can_read_them) {
  end_results([](task_scope& scope) { return scope.spawn([] { return tracked(1); }); });
}

TEST(results, end_for_which_there_was_no_child) {
  runtime rt(with_workers(1));
  rt.run([&] {
    task_scope scope;
    const long before = refused_new::in_use();
    struct not_moved {
      not_moved() = default;
      not_moved(const not_moved&) { throw std::bad_alloc(); }
      int operator()() { return 1; }
    };
    const not_moved f;
    EXPECT_THROW((void)scope.spawn(f), std::bad_alloc);
    scope.sync();
    EXPECT_EQ(refused_new::in_use(), before);
  });
}

TEST(results, may_outlive_their_scope) {
  runtime rt(with_workers(2));
  rt.run([] {
    std::vector<spawned<tracked>> kept;
    {
      task_scope scope;
      for (int i = 0; i < 100; ++i) kept.push_back(scope.spawn([] { return tracked(1); }));
      EXPECT_THROW(kept.front().get(), misuse_error) << "before sync()";
      kept.erase(kept.begin());
    }
    EXPECT_EQ(tracked::living(), 99);
    for (int i = 0; i < 50; ++i) (void)kept[static_cast<std::size_t>(i)].get();
    EXPECT_EQ(tracked::living(), 49);
    kept.clear();
    EXPECT_EQ(tracked::living(), 0);
  });
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
