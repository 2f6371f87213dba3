// SPDX-License-Identifier: Apache-2.0
// What a child of a process has whose threads wait for descriptors.
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <thread>
#include <vector>

#include "parts.hpp"
#include "support.hpp"

namespace descriptors {

// The signal for who writes to where nobody reads is the thread's, on whatever worker it runs.
void broken_pipes() {
  a_pipe p;
  p.close_in();
  a_socketpair s;
  s.close_in();
  const auto is_refused = [](ssize_t n) {
    SAME(n, -1);
    SAME(errno, EPIPE);
  };
  for (const int fd : {p.out, s.out}) {
    const int status = status_of_child([&] {
      signal(SIGPIPE, SIG_DFL);
      (void)!write(fd, "x", 1);
    });
    SAME(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE, true);
    SAME(status_of_child([&] {
           signal(SIGPIPE, &count_one);
           handled = 0;
           is_refused(write(fd, "x", 1));
           SAME(handled, 1);
           if (fd == s.out) is_refused(send(fd, "x", 1, MSG_NOSIGNAL));
           SAME(handled, 1);
           sigset_t one;
           sigemptyset(&one);
           sigaddset(&one, SIGPIPE);
           SAME(pthread_sigmask(SIG_BLOCK, &one, nullptr), 0);
           is_refused(write(fd, "x", 1));
           SAME(handled, 1);
           sigset_t now;
           SAME(sigpending(&now), 0);
           SAME(sigismember(&now, SIGPIPE), 1);
           SAME(pthread_sigmask(SIG_UNBLOCK, &one, nullptr), 0);
           SAME(handled, 2);
         }),
         0);
  }
  // Blocked by a thread alone, whatever it runs on: it is not ended.
  std::thread([&] {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGPIPE);
    SAME(pthread_sigmask(SIG_BLOCK, &one, nullptr), 0);
    for (const int fd : {p.out, s.out}) {
      is_refused(write(fd, "x", 1));
      sigset_t now;
      SAME(sigpending(&now), 0);
      SAME(sigismember(&now, SIGPIPE), 1);
      int number = 0;
      SAME(sigwait(&one, &number), 0);
      SAME(number, SIGPIPE);
      SAME(sigpending(&now), 0);
      SAME(sigismember(&now, SIGPIPE), 0);
    }
  }).join();
}

// A child has no descriptors that it would not have natively, and may close all that it has.
void descriptors_of_a_child() {
  const a_pipe p;
  beside([&] { SAME(get(p.in), 'c'); }, [&] { put(p.out, 'c'); });
  const auto lowest = [] {
    const std::array<int, 3> numbers{dup(1), dup(1), dup(1)};
    for (const int fd : numbers) close(fd);
    return numbers;
  };
  const auto here = lowest();
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    wrong = 0;
    SAME(lowest() == here, true);
    for (int fd = 3; fd < 1024; ++fd) close(fd);
    const a_pipe q;
    const int set = epoll_create1(0);
    std::thread([&] { beside([&] { SAME(get(q.in), 'd'); }, [&] { put(q.out, 'd'); }); }).join();
    epoll_event e{};
    SAME(epoll_wait(set, &e, 1, 0), 0);
    std::fflush(stdout);
    _exit(wrong == 0 ? 0 : 1);
  }
  int status = 0;
  SAME(waitpid(child, &status, 0), child);
  SAME(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

// A child has what the program has, and nothing of its waits: it ends when all others have closed.
void forked() {
  a_pipe p;
  a_pipe tell;
  const std::vector<char> all = message_of(much);
  std::atomic<bool> asks{false};
  std::thread writer([&] {
    asks = true;
    SAME(write(p.out, all.data(), much), much);
  });
  while (!asks) sched_yield();
  for (int i = 0; i < 10; ++i) sched_yield();
  const pid_t child = fork();
  if (child == 0) {
    char c = 0;
    close(p.out);
    close(p.in);
    close(tell.out);
    _exit(read(tell.in, &c, 1) == 1 ? 7 : 1);
  }
  std::vector<char> got;
  std::thread reader([&] { got = read_to_end(p.in); });
  writer.join();
  p.close_out();
  reader.join();
  SAME(got == all, true);
  put(tell.out);
  int status = 0;
  SAME(waitpid(child, &status, 0), child);
  SAME(WIFEXITED(status) && WEXITSTATUS(status) == 7, true);
}

}  // namespace descriptors
