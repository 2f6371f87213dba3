// SPDX-License-Identifier: Apache-2.0
// Waits for many descriptors at once.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <ctime>
#include <thread>
#include <vector>

#include "parts.hpp"
#include "support.hpp"

static std::atomic<int> watched{0};

// In front of the C library's, also for libraries.
extern "C" int epoll_ctl(int set, int what, int fd, epoll_event* event) noexcept {
  ++watched;
  return static_cast<int>(syscall(SYS_epoll_ctl, set, what, fd, event));
}

namespace descriptors {

void polls() {
  a_pipe p;
  a_pipe q;
  const int file = memfd_create("strata-test", 0);
  std::array<pollfd, 5> fds{};
  const auto prepare = [&] {
    fds = {{{p.in, POLLIN, 0},
            {q.in, POLLIN, 0},
            {-1, POLLIN, 0},
            {p.in, POLLIN | POLLPRI, 0},  // once more
            {file, 0, 0}}};
  };
  prepare();
  beside(
      [&] {
        SAME(poll(fds.data(), fds.size(), -1), 1);
        SAME(fds[1].revents, POLLIN);
      },
      [&] { put(q.out); });
  get(q.in);
  beside(
      [&] {
        SAME(poll(fds.data(), 1, 3'600'000), 1);
        SAME(fds[0].revents, POLLIN);
      },
      [&] { put(p.out); });
  get(p.in);
  std::thread([&] {
    takes_its_time([&] { SAME(poll(fds.data(), fds.size(), 20), 0); });
    takes_its_time([&] { SAME(poll(fds.data(), 1, 20), 0); });
    takes_its_time([&] { SAME(poll(nullptr, 0, 20), 0); });
    const timespec little{0, 20'000'000};
    takes_its_time([&] { SAME(ppoll(fds.data(), 2, &little, nullptr), 0); });
    SAME(poll(fds.data(), fds.size(), 0), 0);
    const timespec no_time{0, -1};
    SAME(ppoll(fds.data(), 1, &no_time, nullptr), -1);
    SAME(errno, EINVAL);
    fds[0].fd = 1'000'000;
    SAME(poll(fds.data(), fds.size(), -1), 1);
    SAME(fds[0].revents, POLLNVAL);
  }).join();
  prepare();
  beside(
      [&] {
        SAME(poll(fds.data(), 2, -1), 1);
        SAME(fds[0].revents, POLLHUP);
      },
      [&] { p.close_out(); });
  close(file);
}

void selects() {
  a_pipe p;
  const a_pipe q;
  fd_set reads;
  fd_set writes;
  const int top = std::max(p.in, q.in) + 1;
  const auto prepare = [&] {
    FD_ZERO(&reads);
    FD_ZERO(&writes);
    FD_SET(p.in, &reads);
    FD_SET(q.in, &reads);
  };
  prepare();
  beside(
      [&] {
        SAME(select(top, &reads, nullptr, nullptr, nullptr), 1);
        SAME(FD_ISSET(p.in, &reads), false);
        SAME(FD_ISSET(q.in, &reads), true);
      },
      [&] { put(q.out); });
  get(q.in);
  prepare();
  beside(
      [&] {
        timeval long_time{3600, 0};
        SAME(select(top, &reads, &writes, nullptr, &long_time), 1);
        SAME(FD_ISSET(p.in, &reads), true);
        SAME(long_time.tv_sec >= 3000, true);
      },
      [&] { put(p.out); });
  get(p.in);
  std::thread([&] {
    prepare();
    timeval little{0, 20'000};
    takes_its_time([&] { SAME(select(top, &reads, nullptr, nullptr, &little), 0); });
    SAME(FD_ISSET(p.in, &reads), false);
    SAME(little.tv_sec + little.tv_usec, 0);
    const timespec fine{0, 20'000'000};
    prepare();
    takes_its_time([&] { SAME(pselect(top, &reads, nullptr, nullptr, &fine, nullptr), 0); });
    timeval again{0, 20'000};
    takes_its_time([&] { SAME(select(0, nullptr, nullptr, nullptr, &again), 0); });
    FD_ZERO(&writes);
    FD_SET(p.out, &writes);
    SAME(select(p.out + 1, nullptr, &writes, nullptr, nullptr), 1);
    SAME(FD_ISSET(p.out, &writes), true);
    FD_ZERO(&reads);
    const int none = dup(p.in);
    close(none);
    FD_SET(none, &reads);
    SAME(select(none + 1, &reads, nullptr, nullptr, nullptr), -1);
    SAME(errno, EBADF);
  }).join();
}

// Not one after the other: what a wait costs does not grow with system calls.
void sets_of_many() {
  const std::array<a_pipe, 40> pipes;
  const auto all = [&] {
    std::vector<pollfd> fds;
    for (const a_pipe& p : pipes) fds.push_back({p.in, POLLIN, 0});
    return fds;
  };
  const auto reads_of_all = [&](fd_set& reads) {
    FD_ZERO(&reads);
    for (const a_pipe& p : pipes) FD_SET(p.in, &reads);
    return std::max(pipes.front().in, pipes.back().in) + 1;
  };
  const a_pipe& one = pipes[17];
  const int before = watched;
  beside(
      [&] {
        std::vector<pollfd> fds = all();
        SAME(poll(fds.data(), fds.size(), -1), 1);
        SAME(fds[17].revents, POLLIN);
        SAME(fds[16].revents, 0);
      },
      [&] { put(one.out); });
  get(one.in);
  beside(
      [&] {
        fd_set reads;
        timeval long_time{3600, 0};
        SAME(select(reads_of_all(reads), &reads, nullptr, nullptr, &long_time), 1);
        SAME(FD_ISSET(one.in, &reads), true);
        SAME(FD_ISSET(pipes[16].in, &reads), false);
        SAME(long_time.tv_sec >= 3000, true);
      },
      [&] { put(one.out); });
  get(one.in);
  std::thread([&] {
    std::vector<pollfd> fds = all();
    takes_its_time([&] { SAME(poll(fds.data(), fds.size(), 20), 0); });
    fd_set reads;
    timeval little{0, 20'000};
    const int top = reads_of_all(reads);
    takes_its_time([&] { SAME(select(top, &reads, nullptr, nullptr, &little), 0); });
    SAME(FD_ISSET(one.in, &reads), false);
  }).join();
  SAME(watched - before < static_cast<int>(pipes.size()), true);
  // More at once than kernel threads wait for.
  std::vector<std::thread> others;
  std::atomic<int> asking{0};
  for (int i = 0; i < 100; ++i) {
    others.emplace_back([&] {
      std::vector<pollfd> fds = all();
      ++asking;
      SAME(poll(fds.data(), fds.size(), -1), 1);
    });
  }
  while (asking != 100) sched_yield();
  let_others_wait();
  put(one.out);
  for (std::thread& t : others) t.join();
}

// More descriptors than the sets have room for: the process has not as many.
void select_beyond() {
  struct {
    fd_set reads;
    std::array<unsigned char, 16384> behind;
  } sets;
  FD_ZERO(&sets.reads);
  sets.behind.fill(0xff);
  const auto behind = sets.behind;
  const a_pipe p;
  const a_pipe q;
  beside([&] { SAME(get(p.in), 's'); },
         [&] {
           let_others_wait();
           for (const int count : {100'000, INT_MAX}) {
             FD_SET(q.in, &sets.reads);
             timeval little{0, 20'000};
             SAME(select(count, &sets.reads, nullptr, nullptr, &little), 0);
             timeval none{0, 0};
             SAME(select(count, &sets.reads, nullptr, nullptr, &none), 0);
           }
           put(p.out, 's');
         });
  SAME(sets.behind == behind, true);
}

void epolls() {
  const int set = epoll_create1(0);
  const a_pipe p;
  epoll_event e{};
  e.events = EPOLLIN;
  e.data.u64 = 42;
  SAME(epoll_ctl(set, EPOLL_CTL_ADD, p.in, &e), 0);
  e.data.u64 = 0;
  beside(
      [&] {
        SAME(epoll_wait(set, &e, 1, -1), 1);
        SAME(e.data.u64, 42);
      },
      [&] { put(p.out); });
  get(p.in);
  std::thread([&] {
    takes_its_time([&] { SAME(epoll_wait(set, &e, 1, 20), 0); });
    takes_its_time([&] { SAME(epoll_pwait(set, &e, 1, 20, nullptr), 0); });
    SAME(epoll_wait(set, &e, 0, -1), -1);
    SAME(errno, EINVAL);
    SAME(epoll_wait(p.in, &e, 1, -1), -1);
    SAME(errno, EINVAL);
  }).join();
  close(set);
}

}  // namespace descriptors
