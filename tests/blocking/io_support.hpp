// SPDX-License-Identifier: Apache-2.0
// What tests of strata::io wait for, on each number of workers (io_test.cpp).
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "../sched/support.hpp"
#include "strata/blocking.hpp"

namespace strata::test {

struct pair {
  std::array<int, 2> end{-1, -1};
  explicit pair(bool sockets) {
    if (sockets) {
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, end.data()), 0);
    } else {
      EXPECT_EQ(pipe(end.data()), 0);
    }
  }
  ~pair() {
    for (const int fd : end) close(fd);
  }
};

// The two ends of something from which several threads read bytes.
struct source {
  const char* what;
  int to = -1, from = -1;
};

// The kernel cannot be asked not to wait for it. -1: there are none here.
inline source terminal_source() {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) return {"terminal"};
  const int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
  if (terminal < 0) return {"terminal"};
  termios settings{};
  tcgetattr(terminal, &settings);
  cfmakeraw(&settings);
  tcsetattr(terminal, TCSANOW, &settings);
  return {"terminal", master, terminal};
}

class io_on : public testing::TestWithParam<unsigned> {
 protected:
  static options settings() { return with_workers(GetParam()); }
};

// A socket that listens on this host, and blocks.
struct listener {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  explicit listener(int queue = 16) {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), bytes), 0);
    EXPECT_EQ(listen(fd, queue), 0);
    EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  }
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;
  ~listener() { close(fd); }
  // A socket that is connected to it.
  [[nodiscard]] int connected() const {
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(io::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0)
        << errno;
    return client;
  }
};

}  // namespace strata::test
