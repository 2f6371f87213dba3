// SPDX-License-Identifier: Apache-2.0
// strata::io on terminals, of which the kernel says that they are ready where a call has to wait.
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "../common/thread_states.hpp"
#include "../sched/support.hpp"
#include "io_support.hpp"
#include "strata/blocking.hpp"
#include "strata/thread.hpp"
#include "threads/errno_here.hpp"

namespace strata::test {
namespace {

using namespace std::chrono_literals;

source terminal_that_needs_no_bytes(int tenths_of_s) {
  const source s = terminal_source();
  if (s.from < 0) return s;
  termios settings{};
  tcgetattr(s.from, &settings);
  settings.c_cc[VMIN] = 0;
  settings.c_cc[VTIME] = static_cast<cc_t>(tenths_of_s);
  tcsetattr(s.from, TCSANOW, &settings);
  return s;
}

// poll() says nothing of where such a read ends.
TEST_P(io_on, a_terminal_may_need_no_bytes) {
  runtime rt(settings());
  rt.run([] {
    for (const int tenths_of_s : {0, 1}) {
      const source s = terminal_that_needs_no_bytes(tenths_of_s);
      if (s.from < 0) continue;
      char c = 0;
      const auto before = std::chrono::steady_clock::now();
      EXPECT_EQ(io::read(s.from, &c, 1), 0);
      EXPECT_GE(std::chrono::steady_clock::now() - before, tenths_of_s * 100ms);
      // The caller's time, where that is shorter.
      EXPECT_EQ(io::read(s.from, &c, 1, 1ms), tenths_of_s == 0 ? 0 : -1);
      EXPECT_EQ(io::write(s.to, "x", 1), 1);
      ssize_t n = 0;
      while ((n = io::read(s.from, &c, 1)) == 0) this_thread::yield();
      EXPECT_EQ(n, 1);
      EXPECT_EQ(c, 'x');
      for (const int fd : {s.to, s.from}) close(fd);
    }
  });
}

// What the program in a terminal has asked for is told at its other end, too.
TEST_P(io_on, the_other_end_of_a_terminal_waits_for_bytes) {
  runtime rt(settings());
  rt.run([] {
    for (const int tenths_of_s : {0, 1}) {
      const source s = terminal_that_needs_no_bytes(tenths_of_s);
      if (s.from < 0) continue;
      char c = 0;
      EXPECT_EQ(io::read(s.to, &c, 1, 1ms + tenths_of_s * 150ms), -1);
      EXPECT_EQ(detail::errno_here(), ETIMEDOUT);
      thread reader({.name = "reader"}, [&] { EXPECT_EQ(io::read(s.to, &c, 1), 1); });
      (void)text_when("reader", "waiting for file descriptor");
      EXPECT_EQ(io::write(s.from, "x", 1), 1);
      reader.join();
      EXPECT_EQ(c, 'x');
      for (const int fd : {s.to, s.from}) close(fd);
    }
  });
}

// A terminal that has room for a byte calls itself ready, and takes all that it is given.
TEST_P(io_on, a_terminal_with_little_room_stops_no_worker) {
  runtime rt(settings());
  rt.run([] {
    const source s = terminal_source();
    if (s.from < 0) return;
    const std::string sent(300'000, 'a');
    for (const auto& [to, from] : {std::pair(s.to, s.from), std::pair(s.from, s.to)}) {
      thread writer(
          [&, to = to] { EXPECT_EQ(io::write_all(to, sent.data(), sent.size()), sent.size()); });
      std::array<char, 4096> some;
      for (std::size_t got = 0; got < sent.size();) {
        const ssize_t n = io::read(from, some.data(), some.size());
        ASSERT_GT(n, 0) << std::strerror(errno);
        got += static_cast<std::size_t>(n);
      }
      writer.join();
    }
    for (const int fd : {s.to, s.from}) close(fd);
  });
}

TEST_P(io_on, to_read_nothing_takes_nothing_of_a_terminal) {
  runtime rt(settings());
  rt.run([] {
    const source terminal = terminal_source();
    if (terminal.from < 0) return;
    char c = 0;
    for (const int fd : {terminal.from, terminal.to}) {
      EXPECT_EQ(io::read(fd, &c, 0, 1ms), 0) << std::strerror(errno);
      close(fd);
    }
  });
}

// Until it has no room, and gets none: what is written goes on to the other end a little later.
void fill(const source& terminal) {
  constexpr int held_there = 4095;
  fcntl(terminal.to, F_SETFL, O_NONBLOCK);
  const std::string much(1024, 'a');
  for (int there = 0;; sched_yield()) {
    for (std::size_t bytes = much.size(); bytes != 0; bytes /= 32) {
      while (write(terminal.to, much.data(), bytes) > 0) {
      }
    }
    if (there == held_there) break;
    ioctl(terminal.from, FIONREAD, &there);
  }
  fcntl(terminal.to, F_SETFL, 0);
}

// As write() does.
TEST_P(io_on, to_write_nothing_needs_no_room) {
  runtime rt(settings());
  rt.run([] {
    const source s = terminal_source();
    if (s.from < 0) return;
    fill(s);
    EXPECT_EQ(io::wait(s.to, POLLOUT, 1ms), -1);
    EXPECT_EQ(io::write(s.to, "", 0, 1ms), 0) << std::strerror(errno);
    for (const int fd : {s.from, s.to}) close(fd);
  });
}

}  // namespace
}  // namespace strata::test
