// SPDX-License-Identifier: Apache-2.0
// dump_threads() says of every thread what it waits for and where, and takes no harm from those
// that move.
#include "threads/dump.hpp"

#include <poll.h>
#include <setjmp.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <thread>
#include <vector>

#include "../common/refuse_threads.hpp"
#include "../common/thread_states.hpp"
#include "../sched/support.hpp"
#include "sched/scheduler.hpp"
#include "strata/blocking.hpp"
#include "strata/condition_variable.hpp"
#include "strata/mutex.hpp"
#include "strata/semaphore.hpp"
#include "strata/thread.hpp"

namespace strata::test {

// Not in the anonymous namespace, and reached by calls only: a name in backtraces where the program
// exports its symbols.
[[gnu::noinline]] void wait_down_here(binary_semaphore& s, int depth) {
  if (depth > 0) {
    wait_down_here(s, depth - 1);
  } else {
    s.acquire();
  }
  asm volatile("");
}

// What a thread does that never comes to the scheduler.
[[gnu::noinline]] void turn_round(const std::atomic<bool>& over, std::atomic<bool>& turns) {
  while (!over.load(std::memory_order_relaxed)) turns.store(true, std::memory_order_relaxed);
  asm volatile("");
}
// And one with a name of C, which as a mangled one would be "float".
extern "C" [[gnu::noinline]] void f(binary_semaphore* s) {
  s->acquire();
  asm volatile("");
}
// And one that the kernel has.
[[gnu::noinline]] void read_here(int from) {
  char c = 0;
  while (read(from, &c, 1) != 1) {
  }
  asm volatile("");
}

namespace {

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(dump_threads, says_what_each_waits_for) {
  runtime rt(with_workers(2));
  rt.run([] {
    mutex m;
    counting_semaphore<> s(0);
    std::atomic<bool> seen_asleep{false};
    m.lock();
    thread first({.name = "locker"}, [&] { std::lock_guard lock(m); });
    thread second({.name = "taker"}, [&] { s.acquire(); });
    thread third({.name = "joiner"}, [&] { second.join(); });
    thread fourth({.name = "sleeper", .stack_bytes = 64 * 1024}, [&] {
      // To sleep is what it is there for: again and again, until it has been seen to.
      while (!seen_asleep) this_thread::sleep_for(std::chrono::milliseconds(1));
      s.acquire();
    });
    (void)text_when("sleeper", "waiting for time to pass");
    seen_asleep = true;
    (void)text_when("locker", "waiting for mutex at 0x");
    (void)text_when("taker", "waiting for semaphore at 0x");
    (void)text_when("joiner", "waiting for thread to end at 0x");
    (void)text_when("sleeper", "waiting for semaphore at 0x");
    const std::string text = threads_text();
    EXPECT_EQ(count(text, "asks for this"), 1u) << text;
    EXPECT_NE(text.find("5 threads on 2 workers"), std::string::npos) << text;
    m.unlock();
    first.join();
    s.release();
    s.release();
    third.join();
    fourth.join();
  });
}

TEST(dump_threads, shows_where_a_waiting_thread_is) {
  runtime rt(with_workers(1));
  rt.run([] {
    binary_semaphore s(0);
    thread t({.name = "deep"}, [&] { wait_down_here(s, 20); });
    const std::string text = paragraph(text_when("deep", "waiting for semaphore"), "deep");
    // As many calls as were made, through ours, to where every stack begins.
    const std::size_t calls = count(text, "\n  #");
    if (slow_build) {
      EXPECT_GT(calls, 20u) << text;
    } else {
      EXPECT_GT(calls, 3u) << text;
    }
    EXPECT_GT(count(text, "strata::test::wait_down_here(strata::counting_semaphore<1l>&, int) +0x"),
              0u)
        << text;
    EXPECT_NE(text.find("strata::detail::stack_main(void*)"), std::string::npos) << text;
    s.release();
    t.join();
  });
}

TEST(dump_threads, calls_functions_of_c_by_their_names) {
  runtime rt(with_workers(1));
  rt.run([] {
    binary_semaphore s(0);
    thread t({.name = "in C"}, [&] { f(&s); });
    const std::string text = paragraph(text_when("in C", "waiting for semaphore"), "in C");
    EXPECT_NE(text.find(" f +0x"), std::string::npos) << text;
    s.release();
    t.join();
  });
}

TEST(dump_threads, shows_the_caller) {
  runtime rt(with_workers(1));
  rt.run([] {
    const std::string text = threads_text();
    EXPECT_GT(count(text, "\n  #"), 2u) << text;
    EXPECT_NE(text.find("strata::threads_text"), std::string::npos) << text;
  });
}

// On the only worker; `ask` is called from outside once that has begun. It never waits.
template <class Body, class Ask>
void while_one_runs(Body body, Ask ask) {
  runtime rt(with_workers(1));
  std::atomic<bool> begun{false};
  std::thread outside([&] {
    while (!begun) std::this_thread::yield();
    ask();
  });
  rt.run([&] { thread({.name = "busy"}, [&] { body(begun); }).join(); });
  outside.join();
}

TEST(dump_threads, shows_where_a_running_thread_is) {
  if (thread_sanitizer) GTEST_SKIP() << "shown without";
  std::atomic<bool> over{false};
  while_one_runs([&](std::atomic<bool>& begun) { turn_round(over, begun); },
                 [&] {
                   const std::string text = paragraph(threads_text(), "busy");
                   EXPECT_NE(text.find("running on worker 0\n"), std::string::npos) << text;
                   EXPECT_NE(text.find("strata::test::turn_round("), std::string::npos) << text;
                   EXPECT_NE(text.find("stack_main(void*)"), std::string::npos) << text;
                   over = true;
                 });
}

TEST(dump_threads, shows_where_a_thread_is_that_the_kernel_has) {
  if (thread_sanitizer) GTEST_SKIP() << "shown without";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  while_one_runs(
      [&](std::atomic<bool>& begun) {
        begun = true;
        read_here(ends[0]);
      },
      [&] {
        std::string text;
        do {
          text = paragraph(threads_text(), "busy");
        } while (text.find("strata::test::read_here(int)") == std::string::npos);
        EXPECT_NE(text.find("stack_main(void*)"), std::string::npos) << text;
        EXPECT_EQ(write(ends[1], "x", 1), 1);
      });
  for (const int fd : ends) close(fd);
}

// Who is looked at goes on as if nothing had been: no call of it ends early.
TEST(dump_threads, ends_no_call_of_who_is_stopped) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  while_one_runs(
      [&](std::atomic<bool>& begun) {
        pollfd one{ends[0], POLLIN, 0};
        begun = true;
        EXPECT_EQ(poll(&one, 1, -1), 1);
      },
      [&] {
        for (int i = 0; i < scaled(100, 10); ++i) (void)threads_text();
        EXPECT_EQ(write(ends[1], "x", 1), 1);
      });
  for (const int fd : ends) close(fd);
}

struct does_nothing {
  void operator()() const {}
};

TEST(dump_threads, names_those_that_have_not_begun) {
  runtime rt(with_workers(1));
  rt.run([] {
    thread first({.name = "first of all"}, [] {});
    thread second({.name = "second", .stack_bytes = 64 * 1024}, [] {});
    thread third{does_nothing()};
    thread fourth({.name = "stays here", .pinned = true}, [] {});
    const std::string text = threads_text();
    EXPECT_NE(text.find("\nthread \"first of all\": has not begun\n"), std::string::npos) << text;
    EXPECT_NE(text.find("\nthread \"second\": has not begun\n"), std::string::npos) << text;
    EXPECT_NE(text.find("does_nothing\": has not begun\n"), std::string::npos) << text;
    EXPECT_NE(text.find("\nthread \"stays here\": has not begun\n"), std::string::npos) << text;
    first.join();
    second.join();
    third.join();
    fourth.join();
  });
}

// Put where other policies, and threads from outside, leave what a worker has yet to take.
TEST(dump_threads, names_those_that_are_on_their_way) {
  runtime rt(with_workers(1));
  rt.run([] {
    detail::place& here = detail::this_place();
    std::vector<thread> all;
    const auto new_one = [&](const char* name) {
      all.emplace_back(thread_attributes{.name = name}, [] {});
      return here.ready.pop();
    };
    here.waive.to_successor.push(new_one("for the next worker"));
    here.waive.for_anybody.push(new_one("for any worker"));
    here.owner->inject(new_one("from outside"));
    here.owner->inject(new_one("also from outside"));
    const std::string text = threads_text();
    for (const char* name :
         {"for the next worker", "for any worker", "from outside", "also from outside"}) {
      EXPECT_EQ(count(text, std::string("\nthread \"") + name + "\": has not begun\n"), 1u) << text;
    }
    EXPECT_TRUE(here.try_put(here.waive.to_successor.pop()));
    EXPECT_TRUE(here.try_put(here.waive.for_anybody.pop()));
    for (thread& t : all) t.join();
  });
}

TEST(dump_threads, counts_those_that_have_not_begun) {
  runtime rt(with_workers(1));
  rt.run([] {
    std::vector<thread> some;
    for (int i = 0; i < 3; ++i) some.emplace_back([] {});
    EXPECT_NE(threads_text().find("about 3 more have not begun"), std::string::npos);
    for (thread& t : some) t.join();
    EXPECT_EQ(threads_text().find("have not begun"), std::string::npos);
  });
}

TEST(dump_threads, works_without_a_runtime_and_from_outside) {
  EXPECT_EQ(threads_text(), "strata: no runtime\n");
  runtime rt(with_workers(2));
  std::atomic<bool> seen{false};
  std::thread outside([&] {
    while (threads_text().find("inside") == std::string::npos) std::this_thread::yield();
    seen = true;
  });
  rt.run([&] {
    thread t({.name = "inside"}, [&] {
      while (!seen) this_thread::yield();
    });
    t.join();
  });
  outside.join();
}

TEST(dump_threads, survives_threads_that_come_go_and_move) {
  runtime rt(with_workers(2));
  std::atomic<bool> enough{false};
  std::thread looker([&] {
    std::size_t seen = 0;
    for (int i = 0; i < scaled(200, 30); ++i) seen += threads_text().size();
    EXPECT_GT(seen, 0u);
    enough = true;
  });
  rt.run([&] {
    mutex m;
    condition_variable changed;
    bool turn = false;
    const auto play = [&](bool mine) {
      std::unique_lock lock(m);
      while (!enough) {
        changed.wait(lock, [&] { return turn == mine || enough; });
        turn = !mine;
        changed.notify_all();
      }
      changed.notify_all();
    };
    thread a({.name = "a"}, play, false);
    thread b({.name = "b"}, play, true);
    while (!enough) {
      std::vector<thread> some;
      for (int i = 0; i < 20; ++i)
        some.emplace_back(thread_attributes{.name = "short lived with a name on the heap"}, [i] {
          for (int k = 0; k < i; ++k) this_thread::yield();
        });
      for (thread& t : some) t.join();
    }
    a.join();
    b.join();
  });
  looker.join();
}

TEST(dump_signal, prints_on_the_signal_and_gives_the_handler_back) {
  struct sigaction before, now;
  std::memset(&before, 0, sizeof before);
  std::memset(&now, 0, sizeof now);
  sigaction(SIGUSR1, nullptr, &before);
  options o = with_workers(2);
  o.dump_signal = "USR1";
  // Standard error, where it can be waited for.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::fflush(stderr);
  const int kept = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  std::string text;
  {
    runtime rt(o);
    rt.run([&] {
      binary_semaphore s(0);
      thread t({.name = "sought"}, [&] { s.acquire(); });
      (void)text_when("sought", "waiting for semaphore");
      raise(SIGUSR1);
      while (text.find("\"sought\"") == std::string::npos) {
        char some[4096];
        const auto n = io::read(ends[0], some, sizeof some);
        ASSERT_GT(n, 0);
        text.append(some, static_cast<std::size_t>(n));
      }
      s.release();
      t.join();
    });
  }
  dup2(kept, STDERR_FILENO);
  for (const int fd : {kept, ends[0], ends[1]}) close(fd);
  EXPECT_NE(text.find("strata: asked by a signal\n"), std::string::npos) << text;
  EXPECT_NE(text.find("2 workers,"), std::string::npos) << text;
  sigaction(SIGUSR1, nullptr, &now);
  EXPECT_EQ(now.sa_handler, before.sa_handler);
}

TEST(dump_signal_death, works_after_it_was_refused_a_thread) {
  if (address_sanitizer || thread_sanitizer) GTEST_SKIP() << "the sanitizer needs the addresses";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto refused_once = [] {
    refuse_threads();
    try {
      const detail::dump_signal refused("USR1");
      std::_Exit(3);
    } catch (const std::system_error&) {
    }
    allow_threads();
    const detail::dump_signal answered("USR1");
    raise(SIGUSR1);  // ends the process where nobody handles it
    std::_Exit(42);
  };
  EXPECT_EXIT(refused_once(), testing::ExitedWithCode(42), "");
}

std::atomic<int> own_calls{0};
void (*passed_on_to)(int, siginfo_t*, void*) = nullptr;
void count_call(int) { ++own_calls; }
void count_call_and_pass_on(int number, siginfo_t* info, void* machine) {
  ++own_calls;
  if (passed_on_to != nullptr) passed_on_to(number, info, machine);
}
void handle_usr1(void (*handler)(int, siginfo_t*, void*), struct sigaction* before) {
  struct sigaction wanted;
  std::memset(&wanted, 0, sizeof wanted);
  wanted.sa_sigaction = handler;
  wanted.sa_flags = SA_SIGINFO;
  sigaction(SIGUSR1, &wanted, before);
}

// The program's own handler is in ours' place while that is to be given back.
TEST(dump_signal_death, goes_on_where_the_program_has_kept_its_handler) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto kept = [] {
    std::signal(SIGUSR1, &count_call);
    struct sigaction ours;
    {
      const detail::dump_signal first("USR1");
      handle_usr1(&count_call_and_pass_on, &ours);
    }
    sigaction(SIGUSR1, &ours, nullptr);
    const detail::dump_signal second("USR1");
    raise(SIGUSR1);
    std::_Exit(own_calls == 1 ? 42 : 3);
  };
  EXPECT_EXIT(kept(), testing::ExitedWithCode(42), "");
}

// To the program's loop, where the next one interrupts it as deep as this one did.
sigjmp_buf loop;
void count_call_and_leave(int) {
  ++own_calls;
  siglongjmp(loop, 1);
}

TEST(dump_signal_death, is_passed_on_again_where_a_handler_was_left) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto leaves = [] {
    std::signal(SIGUSR1, &count_call_and_leave);
    const detail::dump_signal here("USR1");
    (void)sigsetjmp(loop, 1);
    if (own_calls < 3) raise(SIGUSR1);
    std::_Exit(own_calls == 3 ? 42 : 3);
  };
  EXPECT_EXIT(leaves(), testing::ExitedWithCode(42), "");
}

TEST(dump_signal_death, is_passed_on_once_by_a_handler_that_knows_ours) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto knows = [] {
    struct sigaction ours;
    {
      const detail::dump_signal first("USR1");
      handle_usr1(&count_call_and_pass_on, &ours);
    }
    passed_on_to = ours.sa_sigaction;
    const detail::dump_signal second("USR1");
    raise(SIGUSR1);
    raise(SIGUSR1);
    std::_Exit(own_calls == 2 ? 42 : 3);
  };
  EXPECT_EXIT(knows(), testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace strata::test
