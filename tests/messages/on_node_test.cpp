// SPDX-License-Identifier: Apache-2.0
// Which numbers name a node, and what a call does with one that its function could not take. What
// does not compile: tests/fibers/rejected/spelling.cpp; between nodes: program_calls.cpp.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "../sched/support.hpp"
#include "strata/call.hpp"
#include "strata/error.hpp"
#include "strata/fiber.hpp"
#include "strata/global_ptr.hpp"
#include "strata/pthread.h"
#include "strata/remote_thread.hpp"
#include "strata/runtime.hpp"
#include "strata/semaphore.hpp"
#include "strata/shared_task.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

int difference(int from, int to) { return to - from; }
template <class T>
T& through(T* place) {
  return *place;
}
void add(int* place, int more) { through(place) += more; }

TEST(on_node, takes_a_number_of_any_type_that_a_node_can_have) {
  EXPECT_EQ(on_node(0).number, 0);
  EXPECT_EQ(on_node(65'535L).number, 65'535);
  EXPECT_EQ(on_node(std::uint8_t{200}).number, 200);
  EXPECT_EQ(on_node(node_id_t{7}).number, 7);
  EXPECT_EQ(on_node().number, 0);
}

TEST(on_node, refuses_a_number_that_no_node_can_have) {
  const auto words_for = [](auto number) -> std::string {
    try {
      return "node " + std::to_string(on_node(number).number);
    } catch (const misuse_error& e) {
      return e.what();
    }
  };
  EXPECT_EQ(words_for(-1), "no node -1: nodes have numbers from 0 to 65535");
  EXPECT_EQ(words_for(65'536U), "no node 65536: nodes have numbers from 0 to 65535");
  EXPECT_EQ(words_for(std::uint64_t{1} << 63),
            "no node 9223372036854775808: nodes have numbers from 0 to 65535");
  EXPECT_EQ(words_for(std::int8_t{-128}), "no node -128: nodes have numbers from 0 to 65535");
}

TEST(on_node, is_what_a_number_means_that_a_function_cannot_take) {
  runtime rt(with_workers(1));
  rt.run([] {
    EXPECT_EQ(call<difference>(0, 3, 10), 7);
    EXPECT_EQ(call<&difference>(node_id(), 3, 10), 7);
    EXPECT_EQ(call<difference>(3, 10)(), 7) << "a call that is still to be made";
    EXPECT_THROW(call<difference>(1, 3, 10), misuse_error);
    EXPECT_THROW(call<difference>(-1, 3, 10), misuse_error);
    EXPECT_THROW(call<difference>(65'536, 3, 10), misuse_error) << "not node 0";
  });
}

TEST(on_node, is_what_a_number_means_to_threads_and_tasks) {
  runtime rt(with_workers(1));
  rt.run([] {
    int number = 1;
    remote_thread(
        0, [](int* place, int more) { add(place, more); }, local_address(&number), 2)
        .join();
    EXPECT_EQ(number, 3);
    remote_thread(node_id(), call<add>(local_address(&number), 4)).join();
    EXPECT_EQ(number, 7);
    shared_task(0, call<add>(local_address(&number), 5)).join();
    EXPECT_EQ(number, 12);
    EXPECT_THROW(remote_thread(-1, [] {}), misuse_error);
    EXPECT_THROW(remote_thread(65'536, [] {}), misuse_error);
    EXPECT_THROW(shared_task(1, [] {}), misuse_error);
  });
}

struct marks_place : threaded {
  int* place;
  void start() {
    *place = 1;
    terminate();
  }
};

TEST(on_node, is_what_a_number_means_to_invoke) {
  runtime rt(with_workers(1));
  int number = 0;
  rt.run([&] {
    EXPECT_THROW(invoke<marks_place>(65'536, local_address(&number)), misuse_error) << "not node 0";
    EXPECT_THROW(invoke<marks_place>(-1, local_address(&number)), misuse_error);
    EXPECT_THROW(invoke<marks_place>(1, local_address(&number)), misuse_error);
  });
  rt.wait_idle();
  EXPECT_EQ(number, 0);
  rt.run([&] { invoke<marks_place>(0, local_address(&number)); });
  rt.wait_idle();
  EXPECT_EQ(number, 1);
}

TEST(num_workers, are_those_of_the_calling_runtime) {
  EXPECT_EQ(num_workers(), 1U);
  for (const unsigned workers : {1U, 3U}) {
    runtime rt(with_workers(workers));
    rt.run([&] { EXPECT_EQ(num_workers(), workers); });
    EXPECT_EQ(num_workers(), 1U);
  }
}

// What leaves their scope is not lost to them, nor they to what they were given.
TEST(remote_threads, are_awaited_by_an_error_that_leaves_their_scope) {
  runtime rt(with_workers(1));
  int number = 1;
  const auto fails = [&] {
    std::vector<remote_thread> all;
    all.emplace_back(0, [] { throw std::range_error("disk is full"); });
    all.emplace_back(0, [] { throw std::range_error("another"); });
    all.emplace_back(
        0,
        [](int* place) {
          this_thread::yield();
          add(place, 2);
        },
        local_address(&number));
    for (remote_thread& t : all) t.join();
  };
  try {
    rt.run(fails);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::range_error& e) {
    EXPECT_STREQ(e.what(), "disk is full");
  }
  EXPECT_EQ(number, 3);
}

TEST(remote_threads, are_awaited_where_nobody_joins_them) {
  runtime rt(with_workers(1));
  rt.run([] {
    int number = 1;
    { const remote_thread left(0, call<add>(local_address(&number), 2)); }
    EXPECT_EQ(number, 3);
    remote_thread replaced(0, call<add>(local_address(&number), 4));
    replaced = remote_thread(0, call<add>(local_address(&number), 8));
    EXPECT_GE(number, 7);
    replaced.join();
    EXPECT_EQ(number, 15);
    EXPECT_FALSE(replaced.joinable());
  });
}

TEST(remote_threads, are_awaited_for_some_time) {
  runtime rt(with_workers(1));
  rt.run([] {
    const auto until_free = [](counting_semaphore<>* may_end, int* number) {
      through(may_end).acquire();
      add(number, 1);
      throw std::range_error("disk is full");
    };
    counting_semaphore<> may_end(0);
    int number = 1;
    remote_thread t(0, until_free, local_address(&may_end), local_address(&number));
    const auto time = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
    EXPECT_FALSE(t.wait_until(time));
    EXPECT_GE(std::chrono::steady_clock::now(), time);
    EXPECT_FALSE(t.wait_for(std::chrono::seconds(0)));
    EXPECT_TRUE(t.joinable());
    may_end.release();
    EXPECT_TRUE(t.wait_for(std::chrono::hours(1)));
    EXPECT_EQ(number, 2);
    EXPECT_TRUE(t.wait_for(std::chrono::seconds(0)));
    EXPECT_TRUE(t.wait_until(std::chrono::system_clock::now()));
    EXPECT_THROW(t.join(), std::range_error);
    EXPECT_THROW((void)t.wait_for(std::chrono::hours(1)), misuse_error);
    // Left alone after it has been awaited.
    remote_thread left(0, call<add>(local_address(&number), 2));
    (void)left.wait_for(std::chrono::seconds(0));
    left.detach();
    { remote_thread ends(0, call<add>(local_address(&number), 4)); }
    EXPECT_GE(number, 6);
    while (number != 8) this_thread::yield();
  });
}

// Who awaits it, however it does, goes on.
TEST(remote_threads, that_leave_by_pthread_exit_have_ended) {
  runtime rt(with_workers(1));
  bool has_gone_on = false;
  rt.run([&] {
    const auto leaves = [](int* place) {
      add(place, 1);
      strata_pthread_exit(nullptr);
    };
    int number = 0;
    remote_thread(0, leaves, local_address(&number)).join();
    EXPECT_EQ(number, 1);
    remote_thread timed(0, leaves, local_address(&number));
    EXPECT_TRUE(timed.wait_for(std::chrono::hours(1)));
    EXPECT_EQ(number, 2);
    timed.join();
    { const remote_thread left(0, leaves, local_address(&number)); }
    EXPECT_EQ(number, 3);
    on_every_node(leaves, local_address(&number));
    EXPECT_EQ(number, 4);
    shared_task task(0, leaves, local_address(&number));
    task.join();
    EXPECT_EQ(number, 5);
    EXPECT_TRUE(task.has_ended());
    remote_thread detached(0, leaves, local_address(&number));
    detached.detach();
    while (number != 6) this_thread::yield();
    has_gone_on = true;
  });
  EXPECT_TRUE(has_gone_on);
}

TEST(remote_threads, that_are_cancelled_have_ended) {
  runtime rt(with_workers(1));
  bool has_gone_on = false;
  rt.run([&] {
    const auto waits = [](pthread_t* place) {
      through(place) = strata_pthread_self();
      for (;;) {
        strata_pthread_testcancel();
        this_thread::yield();
      }
    };
    pthread_t self{};
    remote_thread t(0, waits, local_address(&self));
    while (self == pthread_t{}) this_thread::yield();
    EXPECT_EQ(strata_pthread_cancel(self), 0);
    t.join();
    has_gone_on = true;
  });
  EXPECT_TRUE(has_gone_on);
}

struct joins_in_a_fiber : threaded {
  bool* was_refused;
  slot_ptr done;
  void start() {
    remote_thread t(0, [] {});
    EXPECT_THROW(t.join(), misuse_error);
    EXPECT_THROW((void)t.wait_for(std::chrono::hours(1)), misuse_error);
    EXPECT_TRUE(t.joinable());
    t.detach();
    try {
      const remote_thread left(0, [] {});
      throw std::range_error("passes by");
    } catch (const std::range_error&) {
    }
    EXPECT_THROW(on_every_node([] { ADD_FAILURE() << "it is called"; }), misuse_error);
    *was_refused = true;
    sync(done);
    terminate();
  }
};

TEST(remote_threads, are_not_joined_in_fibers) {
  runtime rt(with_workers(1));
  rt.run([] {
    bool was_refused = false;
    completion done(1);
    token<joins_in_a_fiber>(local_address(&was_refused), done.sptr());
    done.wait();
    EXPECT_TRUE(was_refused);
  });
}

}  // namespace
}  // namespace strata::test
