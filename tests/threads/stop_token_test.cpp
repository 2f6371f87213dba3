// SPDX-License-Identifier: Apache-2.0
// Stop tokens keep the standard's promises, also where callbacks wait.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <type_traits>
#include <vector>

#include "../common/slow_builds.hpp"
#include "../sched/support.hpp"
#include "strata/blocking.hpp"
#include "strata/parallel.hpp"
#include "strata/task_scope.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

static_assert(!std::is_same_v<stop_token, std::stop_token>);
static_assert(std::is_convertible_v<stop_token, std::stop_token>);
static_assert(std::is_nothrow_default_constructible_v<stop_token> &&
              std::is_nothrow_copy_constructible_v<stop_token> &&
              std::is_nothrow_move_constructible_v<stop_token>);
static_assert(std::is_nothrow_copy_constructible_v<stop_source> &&
              std::is_nothrow_constructible_v<stop_source, nostopstate_t> &&
              !std::is_convertible_v<nostopstate_t, stop_source>);
using a_callback = stop_callback<void (*)()>;
static_assert(!std::is_copy_constructible_v<a_callback> &&
              !std::is_move_constructible_v<a_callback> &&
              std::is_nothrow_constructible_v<a_callback, stop_token, void (*)()> &&
              !std::is_constructible_v<a_callback, stop_token, int> &&
              std::is_same_v<a_callback::callback_type, void (*)()>);
static_assert(std::is_same_v<decltype(jthread().get_stop_token()), stop_token>);

TEST(stop_tokens, tell_whether_a_stop_is_possible_and_requested) {
  const stop_token none;
  EXPECT_FALSE(none.stop_possible());
  EXPECT_FALSE(none.stop_requested());
  EXPECT_FALSE(stop_source(nostopstate).stop_possible());
  EXPECT_FALSE(stop_source(nostopstate).request_stop());
  EXPECT_EQ(stop_source(nostopstate), stop_source(nostopstate));
  stop_token left, asked;
  {
    stop_source s;
    left = s.get_token();
    EXPECT_TRUE(left.stop_possible());
    EXPECT_EQ(left, s.get_token());
    EXPECT_NE(left, none);
    stop_source other;
    EXPECT_NE(s, other);
    asked = other.get_token();
    {
      const stop_source copy = other;
      EXPECT_EQ(copy, other);
    }
    EXPECT_TRUE(other.request_stop());
    EXPECT_FALSE(other.request_stop());
    EXPECT_TRUE(other.stop_requested());
    const stop_source moved = std::move(other);
    EXPECT_FALSE(other.stop_possible());  // NOLINT(bugprone-use-after-move)
    EXPECT_TRUE(moved.stop_requested());
    s = moved;
    EXPECT_EQ(s, moved);
  }
  EXPECT_FALSE(left.stop_possible()) << "there is no source any more";
  EXPECT_TRUE(asked.stop_possible());
  EXPECT_TRUE(asked.stop_requested());
  swap(left, asked);
  EXPECT_TRUE(left.stop_requested());
}

TEST(stop_callbacks, are_called_once_in_the_order_in_which_they_came) {
  stop_source s;
  std::vector<int> called;
  stop_callback first(s.get_token(), [&] { called.push_back(1); });
  std::optional<stop_callback<std::function<void()>>> gone;
  gone.emplace(s.get_token(), [&] { called.push_back(2); });
  const stop_callback third(s.get_token(), [&] { called.push_back(3); });
  gone.reset();
  s.request_stop();
  s.request_stop();
  const stop_callback late(s.get_token(), [&] { called.push_back(4); });
  const stop_callback never(stop_token(), [&] { called.push_back(5); });
  EXPECT_EQ(called, (std::vector<int>{1, 3, 4}));
}

// As shared_stop does on nodes whose workers are busy.
TEST(stop_callbacks, are_called_by_the_request_that_follows_its_announcement) {
  struct counted : detail::stop_node {
    int calls = 0;
    counted() noexcept
        : stop_node([](stop_node& n) noexcept { ++static_cast<counted&>(n).calls; }) {}
  };
  detail::stop_state* const s = detail::stop_state::make();
  const detail::stop_reference kept(s);
  counted before, late;
  EXPECT_EQ(s->add(before), detail::stop_state::outcome::queued);
  s->announce();
  EXPECT_TRUE(s->requested());
  EXPECT_EQ(before.calls, 0);
  EXPECT_EQ(s->add(late), detail::stop_state::outcome::requested);
  EXPECT_TRUE(s->request());
  EXPECT_EQ(before.calls, 1);
  s->announce();
  EXPECT_FALSE(s->request());
  EXPECT_EQ(before.calls, 1);
  s->drop_source();
}

TEST(stop_callbacks, of_a_source_that_is_gone_are_not_called) {
  stop_token left;
  bool called = false;
  std::optional<stop_source> s(std::in_place);
  left = s->get_token();
  const stop_callback before(left, [&] { called = true; });
  s.reset();
  const stop_callback after(left, [&] { called = true; });
  EXPECT_FALSE(called);
}

// The standard's and ours alike.
template <class Source, template <class> class Callback>
void move_tokens_in() {
  Source s;
  auto stop = s.get_token();
  const Callback waits(std::move(stop), [] {});
  EXPECT_FALSE(stop.stop_possible());  // NOLINT(bugprone-use-after-move): that is the question
  s.request_stop();
  stop = s.get_token();
  const Callback called(std::move(stop), [] {});
  EXPECT_EQ(stop, s.get_token());  // NOLINT(bugprone-use-after-move)
  auto of_nobody = Source().get_token();
  const auto same = of_nobody;
  const Callback never(std::move(of_nobody), [] {});
  EXPECT_EQ(of_nobody, same);  // NOLINT(bugprone-use-after-move)
}

TEST(stop_callbacks, take_over_a_token_only_while_they_wait_for_it) {
  move_tokens_in<std::stop_source, std::stop_callback>();
  move_tokens_in<stop_source, stop_callback>();
}

TEST(stop_callbacks, may_end_themselves_others_and_the_source) {
  using callback = stop_callback<std::function<void()>>;
  std::optional<stop_source> s(std::in_place);
  std::optional<callback> self, next, late;
  int called = 0;
  const stop_token stop = s->get_token();
  self.emplace(stop, [&] {
    ++called;
    next.reset();
    late.emplace(stop, [&] { ++called; });  // at once
    s.reset();
    self.reset();
  });
  next.emplace(stop, [&] { called += 10; });
  s->request_stop();
  EXPECT_EQ(called, 2);
  EXPECT_FALSE(self.has_value());
}

class stop_callbacks_on : public leaves_no_frame {};

// One worker is enough: nobody but those who have to wait does.
TEST_P(stop_callbacks_on, may_wait) {
  rt.run([] {
    stop_source s;
    mutex m;
    bool changed = false;
    counting_semaphore<> began(0);
    std::unique_lock lock(m);
    const stop_callback waits(s.get_token(), [&] {
      began.release();
      const std::lock_guard held(m);
      changed = true;
    });
    jthread requests([&] { EXPECT_TRUE(s.request_stop()); });
    began.acquire();
    EXPECT_TRUE(s.stop_requested());
    EXPECT_FALSE(s.request_stop());
    EXPECT_FALSE(changed);
    lock.unlock();
    requests.join();
    EXPECT_TRUE(changed);
  });
}

// The end of a callback that another thread is in the middle of.
TEST_P(stop_callbacks_on, are_awaited_by_who_ends_them) {
  rt.run([] {
    for (int round = 0; round < scaled(200, 20); ++round) {
      stop_source s;
      counting_semaphore<> began(0), may_end(0);
      std::atomic<int> ended{0};
      bool done = false;  // no atomic: the end orders it
      auto callback = std::make_unique<stop_callback<std::function<void()>>>(s.get_token(), [&] {
        began.release();
        may_end.acquire();
        done = true;
        if (round % 2 == 0) this_thread::yield();
      });
      thread requests([&] { s.request_stop(); });
      began.acquire();
      thread ends([&] {
        callback.reset();
        EXPECT_TRUE(done);
        ++ended;
      });
      for (int i = 0; i < 10; ++i) this_thread::yield();
      EXPECT_EQ(ended, 0);
      may_end.release();
      ends.join();
      requests.join();
      EXPECT_EQ(ended, 1);
    }
  });
}

// The callback may go on on another worker than it began on, and still be known as its own.
TEST_P(stop_callbacks_on, end_themselves_after_a_wait) {
  rt.run([] {
    for (int round = 0; round < scaled(200, 20); ++round) {
      stop_source s;
      counting_semaphore<> other_runs(0), go_on(0);
      std::unique_ptr<stop_callback<std::function<void()>>> callback;
      callback = std::make_unique<stop_callback<std::function<void()>>>(s.get_token(), [&] {
        other_runs.release();
        go_on.acquire();
        callback.reset();
      });
      thread other([&] {
        other_runs.acquire();
        go_on.release();
        for (int i = 0; i < 5; ++i) this_thread::yield();
      });
      thread requests([&] { s.request_stop(); });
      requests.join();
      other.join();
      EXPECT_EQ(callback, nullptr);
    }
  });
}

TEST_P(stop_callbacks_on, between_threads_of_both_kinds) {
  rt.run([] {
    for (int round = 0; round < scaled(50, 10); ++round) {
      stop_source s;
      counting_semaphore<> began(0), may_end(0);
      std::atomic<bool> done{false};
      auto callback = std::make_unique<stop_callback<std::function<void()>>>(s.get_token(), [&] {
        began.release();
        may_end.acquire();
        done = true;
      });
      std::thread outside;
      if (round % 2 == 0) {
        thread requests([&] { s.request_stop(); });
        began.acquire();
        outside = std::thread([&] {
          callback.reset();  // blocks
          EXPECT_TRUE(done);
        });
        may_end.release();
        requests.join();
      } else {
        outside = std::thread([&] { s.request_stop(); });
        began.acquire();
        thread ends([&] {
          callback.reset();
          EXPECT_TRUE(done);
        });
        may_end.release();
        ends.join();
      }
      blocking([&] { outside.join(); });
    }
  });
}

// Many come and go while a stop is requested: each is called at most once, and by nobody once it
// has ended.
TEST_P(stop_callbacks_on, come_and_go_while_a_stop_is_requested) {
  rt.run([] {
    for (int round = 0; round < scaled(100, 10); ++round) {
      stop_source s;
      constexpr int each = 20;
      std::vector<thread> threads;
      for (int t = 0; t < 8; ++t) {
        threads.emplace_back([&, stop = s.get_token()] {
          for (int i = 0; i < each; ++i) {
            auto alive = std::make_unique<std::atomic<int>>(0);
            {
              const stop_callback c(stop, [&, p = alive.get()] {
                ++*p;
                this_thread::yield();
              });
              this_thread::yield();
            }
            EXPECT_LE(*alive, 1);
          }
        });
      }
      thread requests([&] { s.request_stop(); });
      for (thread& t : threads) t.join();
      requests.join();
    }
  });
}

TEST_P(stop_callbacks_on, condition_variables_wait_with_either_token) {
  rt.run([] {
    const auto wait = [](auto stop) {
      mutex m;
      condition_variable_any never;
      std::unique_lock lock(m);
      EXPECT_FALSE(never.wait(lock, stop, [] { return false; }));
      EXPECT_TRUE(lock.owns_lock());
      EXPECT_TRUE(stop.stop_requested());
    };
    jthread ours([&](stop_token stop) { wait(stop); });
    jthread standards([&](std::stop_token stop) { wait(stop); });
    jthread both([&](const stop_token& stop) {
      jthread within([&, same = std::stop_token(stop)] { wait(same); });
      wait(stop);
    });
    for (int i = 0; i < 10; ++i) this_thread::yield();
  });
}

INSTANTIATE_TEST_SUITE_P(workers, stop_callbacks_on, testing::Values(1U, 2U, 4U));

TEST(stop_tokens, stand_in_for_the_standards) {
  stop_source s;
  const std::stop_token before = s.get_token();
  EXPECT_TRUE(before.stop_possible());
  EXPECT_EQ(before, std::stop_token(s.get_token()));
  int called = 0;
  const std::stop_callback c(before, [&] { ++called; });
  s.request_stop();
  EXPECT_TRUE(before.stop_requested());
  EXPECT_EQ(called, 1);
  stop_source asked;
  asked.request_stop();
  EXPECT_TRUE(std::stop_token(asked.get_token()).stop_requested());
  EXPECT_FALSE(std::stop_token(stop_token()).stop_possible());
  std::stop_token left;
  {
    const stop_source gone;
    left = gone.get_token();
    EXPECT_TRUE(left.stop_possible());
  }
  EXPECT_FALSE(left.stop_possible());
}

// Whoever is the first to ask for the standard's, and whoever gets that one.
TEST(stop_tokens, are_requested_already_when_many_ask_for_the_standards) {
  for (int round = 0; round < scaled(300, 30); ++round) {
    constexpr int askers = 4;
    stop_source s;
    s.request_stop();
    std::latch all_came(askers);
    std::atomic<int> requested{0};
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < askers; ++i) {
        threads.emplace_back([&] {
          all_came.arrive_and_wait();
          if (std::stop_token(s.get_token()).stop_requested()) ++requested;
        });
      }
    }
    EXPECT_EQ(requested, askers);
  }
}

TEST(stop_tokens, stop_scopes_and_loops) {
  runtime rt(with_workers(2));
  rt.run([] {
    stop_source s;
    s.request_stop();
    task_scope scope(s.get_token());
    std::atomic<int> ran{0};
    scope.spawn([&] { ++ran; });
    scope.sync();
    parallel_for(s.get_token(), 0, 1000, [&](int) { ++ran; });
    EXPECT_EQ(ran, 0);
  });
}

TEST(stop_callbacks_death, end_the_program_when_they_throw) {
  EXPECT_DEATH(
      {
        stop_source s;
        const stop_callback throws(s.get_token(), [] { throw 1; });
        s.request_stop();
      },
      "");
}

}  // namespace
}  // namespace strata::test
