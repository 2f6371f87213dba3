// SPDX-License-Identifier: Apache-2.0
// Programs that close what they did not open, and put files where they have none, while threads
// wait: those go on waiting, and later ones wait as ever.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <thread>
#include <vector>

#include "../c_librarys.h"
#include "parts.hpp"
#include "support.hpp"

namespace descriptors {

// In a child, which has no other descriptors: of what `f` is given, nothing is the program's from
// there on.
template <class F>
static void beside_who_waits(F f) {
  const auto in_child = [&] {
    a_pipe p;
    const int above = std::max(p.in, p.out) + 1;
    std::thread waits([&] { SAME(get(p.in), 'a'); });
    let_others_wait();
    f(above);
    std::thread waits_later([&] { SAME(get(p.in), 'a'); });
    let_others_wait();
    put(p.out, 'a');
    put(p.out, 'a');
    waits.join();
    waits_later.join();
    a_pipe fresh;
    beside([&] { SAME(get(fresh.in), 'b'); },
           [&] {
             let_others_wait();
             put(fresh.out, 'b');
           });
  };
  SAME(status_of_child(in_child), 0);
}

// Where the library that runs us may have descriptors, if it runs us.
static int lowest_of_others() {
  rlimit limit{};
  SAME(getrlimit(RLIMIT_NOFILE, &limit), 0);
  return static_cast<int>(std::min<rlim_t>(4096, limit.rlim_cur / 4 * 3));
}
static constexpr int others_max = 16;

static void not_there(int answer) {
  SAME(answer, -1);
  SAME(errno, EBADF);
}

void closed_without_knowing() {
  beside_who_waits([](int above) { closefrom(above); });
  beside_who_waits([](int above) {
    if (close_range(static_cast<unsigned>(above), ~0U, 0) != 0) SAME(errno, ENOSYS);
  });
  beside_who_waits([](int above) {
    if (syscall(SYS_close_range, above, ~0U, 0) != 0) SAME(errno, ENOSYS);
  });
  beside_who_waits([](int above) {
    for (int fd = above; fd < lowest_of_others(); ++fd) close(fd);
    for (int fd = lowest_of_others(); fd < lowest_of_others() + others_max; ++fd)
      not_there(close(fd));
    for (int fd = lowest_of_others(); fd < lowest_of_others() + others_max; ++fd)
      not_there(static_cast<int>(syscall(SYS_close, fd)));
  });
}

// Whoever has what is in the range.
void ranges_that_are_none() {
  beside_who_waits([](int) {
    constexpr int no_such_flag = 1 << 20;
    for (int fd = lowest_of_others(); fd < lowest_of_others() + others_max; ++fd) {
      const auto only = static_cast<unsigned>(fd);
      SAME(close_range(only, only, no_such_flag), -1);
      SAME(errno == EINVAL || errno == ENOSYS, true);
      SAME(close_range(only, only - 1, 0), -1);
      SAME(errno == EINVAL || errno == ENOSYS, true);
    }
  });
}

// Where the library has something open there is no such number for the program; elsewhere what it
// puts there is its own, and closed as such.
static void is_put_or_not_there(int answer, int fd) {
  if (answer < 0) return not_there(answer);
  SAME(answer, fd);
  char c = 0;
  SAME(read(fd, &c, 1), 0);
  SAME(close(fd), 0);
}

void replaced_without_knowing() {
  beside_who_waits([](int) {
    const int nothing = open("/dev/null", O_RDWR);
    for (int fd = lowest_of_others(); fd < lowest_of_others() + others_max; ++fd) {
      is_put_or_not_there(dup2(nothing, fd), fd);
      is_put_or_not_there(dup3(nothing, fd, O_CLOEXEC), fd);
      is_put_or_not_there(static_cast<int>(syscall(SYS_dup3, nothing, fd, O_CLOEXEC)), fd);
      not_there(dup2(-1, fd));
      not_there(close(fd));
    }
    close(nothing);
  });
}

// While others begin to wait, and end, all the time: each of them gets its own byte.
void replaced_beside_many() {
  const auto in_child = [] {
    constexpr int pairs = 4, turns_min = 200, sweeps = 200;
    std::atomic<bool> is_over{false};
    std::vector<std::thread> all;
    for (int i = 0; i < pairs; ++i) {
      all.emplace_back([&] {
        a_pipe there, back;
        std::thread answers([&] {
          for (;;) {
            const char c = get(there.in);
            put(back.out, c);
            if (c == 'q') return;
          }
        });
        for (int n = 0; n < turns_min || !is_over; ++n) {
          put(there.out, 'x');
          SAME(get(back.in), 'x');
        }
        put(there.out, 'q');
        SAME(get(back.in), 'q');
        answers.join();
      });
    }
    const int nothing = open("/dev/null", O_RDWR);
    for (int i = 0; i < sweeps; ++i) {
      for (int fd = lowest_of_others(); fd < lowest_of_others() + others_max; ++fd)
        (void)dup2(nothing, fd);
      for (int fd = lowest_of_others(); fd < lowest_of_others() + others_max; ++fd) (void)close(fd);
      std::this_thread::yield();
    }
    is_over = true;
    for (std::thread& one : all) one.join();
    close(nothing);
  };
  SAME(status_of_child(in_child), 0);
}

// Where there is room for no other number.
void replaced_without_room() {
  const auto in_child = [] {
    constexpr rlim_t room = 64;
    constexpr int waiting = 20;
    const rlimit limit{room, room};
    SAME(setrlimit(RLIMIT_NOFILE, &limit), 0);
    std::array<std::unique_ptr<a_pipe>, waiting> pipes;
    std::vector<std::thread> all;
    for (auto& p : pipes) {
      p = std::make_unique<a_pipe>();
      all.emplace_back([&p] { SAME(get(p->in), 'a'); });
    }
    let_others_wait();
    const int nothing = open("/dev/null", O_RDWR);
    std::vector<int> mine;
    for (int fd = lowest_of_others(); fd < static_cast<int>(room); ++fd) {
      if (dup2(nothing, fd) == fd) mine.push_back(fd);
    }
    for (auto& p : pipes) put(p->out, 'a');
    for (std::thread& one : all) one.join();
    for (const int fd : mine) {
      char c = 0;
      SAME(read(fd, &c, 1), 0);
      SAME(close(fd), 0);
    }
    close(nothing);
  };
  SAME(status_of_child(in_child), 0);
}

// The child of a vfork() has descriptors of its own, and in it all numbers are the program's.
void replaced_in_a_child() {
  const auto in_child = [] {
    a_pipe p;
    std::thread waits([&] { SAME(get(p.in), 'a'); });
    let_others_wait();
    const int nothing = open("/dev/null", O_RDWR);
    const int first = lowest_of_others();
    const pid_t child = vfork();
    if (child == 0) {
      int wrong = 0;
      for (int fd = first; fd < first + others_max; ++fd) {
        wrong += dup2(nothing, fd) == fd ? 0 : 1;
        wrong += dup3(nothing, fd, O_CLOEXEC) == fd ? 0 : 1;
        wrong += close(fd) == 0 ? 0 : 1;
      }
      _exit(wrong);
    }
    int status = -1;
    SAME(waitpid(child, &status, 0), child);
    SAME(status, 0);
    put(p.out, 'a');
    waits.join();
    close(nothing);
  };
  SAME(status_of_child(in_child), 0);
}

// By a thread that pthread_create() has not made, and by a handler that interrupts it there. Above
// what the library has, and far enough apart.
static int replaced_by_handler;
static std::atomic<int> handled_there;
static void replace_and_close(int fd) {
  SAME(dup2(STDOUT_FILENO, fd), fd);
  SAME(close(fd), 0);
}

void replaced_in_handlers() {
  static constexpr int handlers = 2'000;
  replaced_by_handler = lowest_of_others() + 3 * others_max;
  handled_there = 0;
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) {
    replace_and_close(replaced_by_handler);
    ++handled_there;
  };
  SAME(sigaction(SIGUSR1, &action, &before), 0);
  static std::atomic<pid_t> who;
  who = 0;
  pthread_t other{};
  const auto replaces = [](void*) -> void* {
    who = static_cast<pid_t>(syscall(SYS_gettid));
    while (handled_there < handlers) replace_and_close(replaced_by_handler + others_max);
    return nullptr;
  };
  SAME(C_LIBRARYS(pthread_create)(&other, nullptr, replaces, nullptr), 0);
  while (who == 0) sched_yield();
  for (int sent = 0; sent < handlers; ++sent) {
    SAME(syscall(SYS_tgkill, getpid(), who.load(), SIGUSR1), 0);
    while (handled_there <= sent) sched_yield();
  }
  SAME(C_LIBRARYS(pthread_join)(other, nullptr), 0);
  SAME(sigaction(SIGUSR1, &before, nullptr), 0);
}

}  // namespace descriptors
