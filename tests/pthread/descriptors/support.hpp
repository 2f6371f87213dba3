// SPDX-License-Identifier: Apache-2.0
// What the parts of this program share: pairs of descriptors, and threads that
// wait for them.
#pragma once
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <vector>

#include "../checks.hpp"

namespace descriptors {

using namespace pthread_programs;

// Two descriptors that belong together.
struct ends {
  int in = -1;   // to read from
  int out = -1;  // to write to
  ends(int a, int b) : in(a), out(b) {}
  ~ends() {
    close_in();
    close_out();
  }
  ends(const ends&) = delete;
  ends& operator=(const ends&) = delete;
  void close_in() {
    if (in >= 0) close(in);
    in = -1;
  }
  void close_out() {
    if (out >= 0) close(out);
    out = -1;
  }
};

struct a_pipe : ends {
  explicit a_pipe(int flags = 0) : ends(-1, -1) {
    std::array<int, 2> both{};
    SAME(pipe2(both.data(), flags), 0);
    in = both[0];
    out = both[1];
  }
};

struct a_socketpair : ends {
  explicit a_socketpair(int type = SOCK_STREAM) : ends(-1, -1) {
    std::array<int, 2> both{};
    SAME(socketpair(AF_UNIX, type, 0, both.data()), 0);
    in = both[0];
    out = both[1];
    const int little = 4096;
    SAME(setsockopt(out, SOL_SOCKET, SO_SNDBUF, &little, sizeof little), 0);
  }
};

// Lines can be read from its first end that are written to the other one.
struct a_terminal : ends {
  a_terminal() : ends(-1, posix_openpt(O_RDWR | O_NOCTTY)) {
    SAME(out >= 0, true);
    SAME(grantpt(out), 0);
    SAME(unlockpt(out), 0);
    std::array<char, 64> name{};
    SAME(ptsname_r(out, name.data(), name.size()), 0);
    in = open(name.data(), O_RDWR | O_NOCTTY);
  }
  // From now on reads wait for no lines, and so many tenths of a second for bytes.
  void wait_for_bytes(cc_t tenths_of_s) const {
    termios settings{};
    SAME(tcgetattr(in, &settings), 0);
    cfmakeraw(&settings);
    settings.c_cc[VMIN] = 0;
    settings.c_cc[VTIME] = tenths_of_s;
    SAME(tcsetattr(in, TCSANOW, &settings), 0);
  }
};

// `waits` in a thread, and once that is about to, `ends_it` what it waits for.
template <class Waits, class Ends>
void beside(Waits waits, Ends ends_it) {
  std::atomic<bool> asks{false};
  std::thread other([&] {
    asks = true;
    waits();
  });
  while (!asks) sched_yield();
  sched_yield();
  ends_it();
  other.join();
}

// The process's status after f() in a thread of a child, which has begun with that.
template <class F, class Begin>
int status_of_child(F f, Begin begin) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    wrong = 0;
    begin();
    std::thread(f).join();
    std::fflush(stdout);
    _exit(wrong == 0 ? 0 : 1);
  }
  int status = 0;
  SAME(waitpid(child, &status, 0), child);
  return status;
}
template <class F>
int status_of_child(F f) {
  return status_of_child(f, [] {});
}

// The others go on as far as they can, where all run on one kernel thread.
inline void let_others_wait() {
  for (int i = 0; i < 5; ++i) std::thread([] {}).join();
}

inline void put(int fd, char what = 'x') { SAME(write(fd, &what, 1), 1); }
inline char get(int fd) {
  char what = 0;
  SAME(read(fd, &what, 1), 1);
  return what;
}

inline std::vector<char> message_of(std::size_t bytes) {
  std::vector<char> all(bytes);
  for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<char>(i * 7 + i / 251);
  return all;
}

// Until the end, in pieces.
inline std::vector<char> read_to_end(int fd) {
  std::vector<char> all;
  std::array<char, 1000> piece{};
  ssize_t n = 0;
  while ((n = read(fd, piece.data(), piece.size())) > 0)
    all.insert(all.end(), piece.begin(), piece.begin() + n);
  SAME(n, 0);
  return all;
}

inline constexpr std::size_t much = 300'000;  // more than fits

struct a_listener {
  explicit a_listener(int family, int room) : fd(socket(family, SOCK_STREAM, 0)) {
    if (family == AF_UNIX) {
      auto& name = reinterpret_cast<sockaddr_un&>(address);
      name.sun_family = AF_UNIX;
      bytes = sizeof(sa_family_t);  // the kernel chooses one
    } else {
      auto& name = reinterpret_cast<sockaddr_in&>(address);
      name.sin_family = AF_INET;
      name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      bytes = sizeof name;
    }
    SAME(bind(fd, at(), bytes), 0);
    bytes = sizeof address;
    SAME(getsockname(fd, at(), &bytes), 0);
    SAME(listen(fd, room), 0);
  }
  ~a_listener() { close(fd); }
  a_listener(const a_listener&) = delete;
  a_listener& operator=(const a_listener&) = delete;
  sockaddr* at() { return reinterpret_cast<sockaddr*>(&address); }

  int fd;
  sockaddr_storage address{};
  socklen_t bytes = 0;
};
inline std::atomic<int> handled{0};
inline void count_one(int) { ++handled; }

inline std::int64_t now_ms() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1'000'000;
}

// f() takes 20 ms at least.
template <class F>
void takes_its_time(F f) {
  const std::int64_t before = now_ms();
  f();
  SAME(now_ms() - before >= 19, true);
}

}  // namespace descriptors
