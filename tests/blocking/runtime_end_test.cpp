// SPDX-License-Identifier: Apache-2.0
// A runtime ends when what goes on has ended, on other OS threads than its workers, too. Who waits
// goes no further, and leaves nothing that others would find.
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <semaphore>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

#include "../common/thread_asleep.hpp"
#include "../sched/support.hpp"
#include "strata/blocking.hpp"
#include "strata/condition_variable.hpp"
#include "strata/fiber.hpp"
#include "strata/mutex.hpp"
#include "strata/semaphore.hpp"
#include "strata/stop_token.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

class runtime_end : public testing::TestWithParam<unsigned> {
 protected:
  static options settings() { return with_workers(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(workers, runtime_end, testing::Values(1U, 4U));

// A call that lasts until it is let go, by a thread of a runtime.
struct long_call {
  std::binary_semaphore has_begun{0}, may_end{0};
  std::atomic<int> result{0};

  void operator()() {
    result = blocking([this] {
      has_begun.release();
      may_end.acquire();
      return 42;
    });
  }
};

// `wait`, on an OS thread of its own, returns only after `meanwhile`, which begins when that
// sleeps.
template <class Wait, class Meanwhile>
void expect_waits(const Wait& wait, const Meanwhile& meanwhile) {
  std::atomic<pid_t> waiter{0};
  std::atomic<bool> is_over{false};
  std::thread waits([&] {
    waiter = gettid();
    wait();
    is_over = true;
  });
  spin_until([&] { return is_over || (waiter != 0 && sleeps(waiter)); });
  EXPECT_FALSE(is_over);
  meanwhile();
  waits.join();
}

// Threads that lie where those of a runtime lay that is gone.
void use_stacks(const options& settings) {
  runtime rt(settings);
  rt.run([] {
    std::vector<thread> some;
    for (int i = 0; i < 10; ++i) {
      some.emplace_back([] {
        std::array<volatile char, 4096> all{};
        for (int k = 0; k < 3; ++k) this_thread::yield();
        for (const volatile char& c : all) ASSERT_EQ(c, 0);
      });
    }
    for (thread& t : some) t.join();
  });
}

constexpr int rounds = scaled(30, 5);

// begin(runtime, call): a stack of that runtime makes the call.
template <class Begin>
void expect_end_after_a_call(const options& settings, const Begin& begin) {
  for (int round = 0; round < rounds; ++round) {
    long_call call;
    auto rt = std::make_unique<runtime>(settings);
    begin(*rt, call);
    call.has_begun.acquire();
    expect_waits([&] { rt.reset(); },
                 [&] {
                   use_stacks(settings);
                   call.may_end.release();
                 });
    EXPECT_EQ(call.result, 42);
  }
}

TEST_P(runtime_end, comes_after_a_call_of_a_task) {
  expect_end_after_a_call(settings(),
                          [](runtime& rt, long_call& call) { rt.submit([&call] { call(); }); });
}

TEST_P(runtime_end, comes_after_a_call_of_a_detached_thread) {
  expect_end_after_a_call(settings(), [](runtime& rt, long_call& call) {
    rt.run([&call] { thread([&call] { call(); }).detach(); });
  });
}

TEST_P(runtime_end, is_not_idle_during_a_call) {
  runtime rt(settings());
  for (int round = 0; round < rounds; ++round) {
    long_call call;
    rt.submit([&] { call(); });
    call.has_begun.acquire();
    expect_waits([&] { rt.wait_idle(); }, [&] { call.may_end.release(); });
    EXPECT_EQ(call.result, 42);
  }
}

struct fails : threaded {
  void start() { throw std::runtime_error("a fiber"); }
};

void expect_failure_is_told(runtime& rt) {
  EXPECT_THROW(rt.run([] {
    completion never;
    token<fails>();
    never.wait();
  }),
               std::runtime_error);
}

// A call has nothing to do with a computation that fails meanwhile, which is told at once.
TEST_P(runtime_end, of_a_failed_computation_comes_before_that_of_a_call) {
  runtime rt(settings());
  long_call call;
  rt.submit([&] { call(); });
  call.has_begun.acquire();
  expect_failure_is_told(rt);
  call.may_end.release();
  rt.wait_idle();
  EXPECT_EQ(call.result, 42);
}

// Nor has a thread that waits for a time to come.
TEST_P(runtime_end, of_a_failed_computation_comes_before_that_of_a_timed_wait) {
  runtime rt(settings());
  std::binary_semaphore has_begun{0};
  counting_semaphore<> may_end{0};
  std::atomic<bool> ended_early{false};
  rt.submit([&] {
    has_begun.release();
    ended_early = may_end.try_acquire_for(std::chrono::hours(1));
  });
  has_begun.acquire();
  expect_failure_is_told(rt);
  may_end.release();
  rt.wait_idle();
  EXPECT_TRUE(ended_early);
}

// Neither what they wait for nor their turns at a descriptor.
TEST_P(runtime_end, leaves_nobody_at_a_descriptor) {
  std::array<int, 2> ends{-1, -1};
  ASSERT_EQ(pipe(ends.data()), 0);
  for (int round = 0; round < rounds; ++round) {
    {
      runtime first(settings());
      first.run([&] {
        for (int i = 0; i < 3; ++i) {
          thread([fd = ends[0]] {
            char c = 0;
            (void)io::read(fd, &c, 1);
            ADD_FAILURE() << "its runtime has ended";
          }).detach();
        }
      });
    }
    runtime second(settings());
    second.run([&] {
      char c = 0;
      thread reader([&] { EXPECT_EQ(io::read(ends[0], &c, 1), 1); });
      EXPECT_EQ(::write(ends[1], "x", 1), 1);
      reader.join();
      EXPECT_EQ(c, 'x');
    });
  }
  for (const int fd : ends) close(fd);
}

// Nor a writer on whose account readers would be held back.
TEST_P(runtime_end, leaves_no_writer_before_a_shared_mutex) {
  for (int round = 0; round < rounds; ++round) {
    shared_mutex m;
    m.lock_shared();
    std::thread reader;
    {
      runtime first(settings());
      first.run([&] {
        for (int i = 0; i < 2; ++i) {
          thread([&] {
            m.lock();
            ADD_FAILURE() << "its runtime has ended";
          }).detach();
        }
        while (m.try_lock_shared()) {  // until one waits
          m.unlock_shared();
          this_thread::yield();
        }
      });
      reader = std::thread([&] {
        m.lock_shared();
        m.unlock_shared();
      });
    }
    const bool is_let_in = m.try_lock_shared();
    EXPECT_TRUE(is_let_in);
    if (is_let_in) m.unlock_shared();
    m.unlock_shared();
    m.lock();
    m.unlock();
    reader.join();
  }
}

// What outlives the runtime and is still known to who waits in it for ever; those who look for
// leaks are to find it.
template <class StopSource>
struct left_behind {
  StopSource stop;
  mutex lock;
  condition_variable_any never;
};

// Nor with a stop source, whose request would wake it.
template <class StopSource>
void expect_stop_finds_nobody(const options& settings) {
  static auto& all = *new std::vector<std::unique_ptr<left_behind<StopSource>>>;
  for (int round = 0; round < rounds; ++round) {
    auto& it = *all.emplace_back(std::make_unique<left_behind<StopSource>>());
    {
      runtime first(settings);
      first.run([&] {
        for (int i = 0; i < 3; ++i) {
          thread([&] {
            std::unique_lock held(it.lock);
            (void)it.never.wait(held, it.stop.get_token(), [] { return false; });
            ADD_FAILURE() << "its runtime has ended";
          }).detach();
        }
      });
    }
    use_stacks(settings);
    EXPECT_TRUE(it.stop.request_stop());
    it.never.notify_all();
  }
}

TEST_P(runtime_end, leaves_nobody_with_a_stop_source) {
  expect_stop_finds_nobody<stop_source>(settings());
}
TEST_P(runtime_end, leaves_nobody_with_a_stop_source_of_the_standard) {
  expect_stop_finds_nobody<std::stop_source>(settings());
}

}  // namespace
}  // namespace strata::test
