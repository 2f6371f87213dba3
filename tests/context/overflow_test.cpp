// SPDX-License-Identifier: Apache-2.0
// A task that needs too much stack ends the program with its name and with what to do.
#include <alloca.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "../common/recurse_for_ever.hpp"
#include "../sched/support.hpp"
#include "sched/place.hpp"
#include "strata/blocking.hpp"
#include "strata/task_scope.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

struct hungry_task {
  int operator()() const {
    volatile int depth = 0;
    return recurse_for_ever(&depth);
  }
};

class overflow_death : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (address_sanitizer || thread_sanitizer) GTEST_SKIP() << "the sanitizer reports it itself";
  }
  static constexpr const char* message =
      "stack overflow in task .*hungry_task(.|\n)*--strata-stack-bytes";
};

TEST_F(overflow_death, in_a_root_on_the_thread_that_entered) {
  EXPECT_EXIT(
      {
        runtime rt(with_workers(2));
        rt.run(hungry_task{});
      },
      ::testing::ExitedWithCode(1), message);
}

TEST_F(overflow_death, on_a_worker) {
  EXPECT_EXIT(
      {
        runtime rt(with_workers(2));
        rt.submit(hungry_task{});
        rt.wait_idle();
      },
      ::testing::ExitedWithCode(1), message);
}

TEST_F(overflow_death, on_a_thread_of_the_program) {
  EXPECT_EXIT(
      {
        runtime rt(with_workers(2));
        std::thread([&] { rt.run(hungry_task{}); }).join();
      },
      ::testing::ExitedWithCode(1), message);
}

template <class A, class B, class C>
struct task_with_a_long_name : hungry_task {};
template <class T>
using longer = task_with_a_long_name<T, T, T>;

TEST_F(overflow_death, with_a_name_of_any_length) {
  EXPECT_EXIT(
      {
        runtime rt(with_workers(1));
        rt.run(longer<longer<longer<int>>>{});
      },
      ::testing::ExitedWithCode(1), "task_with_a_long_name(.|\n)*--strata-stack-bytes");
}

TEST_F(overflow_death, names_the_size_of_the_stack) {
  EXPECT_EXIT(
      {
        options o = with_workers(1);
        o.stack_bytes = 64 * 1024;
        runtime rt(o);
        rt.run(hungry_task{});
      },
      ::testing::ExitedWithCode(1),
      "65536 bytes(.|\n)*--strata-stack-bytes=256K or STRATA_STACK_BYTES=256K");
}

// A flag would change nothing for it.
TEST_F(overflow_death, of_a_thread_with_a_stack_of_its_own_tells_where_to_ask_for_more) {
  EXPECT_EXIT(
      {
        runtime rt(with_workers(1));
        rt.run([] { thread({.name = "small", .stack_bytes = 64 * 1024}, hungry_task{}).join(); });
      },
      ::testing::ExitedWithCode(1),
      "thread small\nstrata: its stack has 65536 bytes; make the thread with a larger one "
      ".stack_bytes "
      ".*pthread_attr_setstacksize.*for example 256K, or");
}

TEST_F(overflow_death, within_blocking_names_who_called) {
  EXPECT_EXIT(
      {
        runtime rt(with_workers(1));
        rt.run([] { thread({.name = "reader"}, [] { blocking(hungry_task{}); }).join(); });
      },
      ::testing::ExitedWithCode(1),
      "stack overflow in a call of strata::blocking.. by thread reader\nstrata: such calls have "
      "stacks of [0-9]+ bytes; .*ulimit -s");
}

TEST_F(overflow_death, within_blocking_names_who_called_last) {
  EXPECT_EXIT(
      {
        runtime rt(with_workers(1));
        rt.run([] {
          thread({.name = "first"}, [] { blocking([] {}); }).join();
          blocking(hungry_task{});
        });
      },
      ::testing::ExitedWithCode(1), "by task .*within_blocking_names_who_called_last");
}

// Takes all of its stack but so many bytes, and is sent a signal.
void is_signalled_at_the_end(std::size_t left) {
  const long process = getpid();
  const long os_thread = syscall(SYS_gettid);  // nothing has to be looked up for the next one
  const auto bottom = reinterpret_cast<std::uintptr_t>(detail::this_place().current->bottom);
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  auto* const rest = static_cast<volatile char*>(alloca(here - bottom - left));
  rest[0] = 1;
  syscall(SYS_tgkill, process, os_thread, static_cast<long>(SIGUSR1));
}

// The kernel has no room for what it writes there for a handler, and nothing else needs any.
TEST_F(overflow_death, where_a_handler_is_called) {
  EXPECT_EXIT(
      {
        std::signal(SIGUSR1, [](int) {});
        runtime rt(with_workers(1));
        rt.run([] {
          thread({.name = "full"}, [] { is_signalled_at_the_end(1024); }).join();
          std::_Exit(3);
        });
      },
      ::testing::ExitedWithCode(1), "stack overflow in thread full(.|\n)*--strata-stack-bytes");
}

TEST_F(overflow_death, not_where_there_is_room_for_a_handler) {
  EXPECT_EXIT(
      {
        std::signal(SIGUSR1, [](int) {});
        runtime rt(with_workers(1));
        rt.run([] {
          thread({.name = "not full"}, [] {
            is_signalled_at_the_end(std::size_t{32} << 10);
          }).join();
          std::_Exit(3);
        });
      },
      ::testing::ExitedWithCode(3), "");
}

TEST_F(overflow_death, other_faults_are_left_alone) {
  EXPECT_EXIT(
      {
        runtime rt(with_workers(2));
        rt.run([] {
          volatile int* volatile nowhere = nullptr;  // no compiler knows
          *nowhere = 1;
        });
      },
      ::testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(overflow_death, a_signal_that_was_sent_ends_the_program_at_once) {
  EXPECT_EXIT(
      {
        runtime rt(with_workers(2));
        std::raise(SIGSEGV);
        std::_Exit(3);
      },
      ::testing::KilledBySignal(SIGSEGV), "");
}

void (*earlier_handler_was_called)(int) = [](int) { std::_Exit(42); };

TEST_F(overflow_death, other_faults_reach_the_handler_that_was_there) {
  EXPECT_EXIT(
      {
        std::signal(SIGSEGV, earlier_handler_was_called);
        runtime rt(with_workers(2));
        rt.run([] {
          volatile int* volatile nowhere = nullptr;  // no compiler knows
          *nowhere = 1;
        });
      },
      ::testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace strata::test
