// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "../common/thread_states.hpp"
#include "../sched/support.hpp"
#include "strata/blocking.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

using namespace std::chrono_literals;

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

class io_on : public testing::TestWithParam<unsigned> {
 protected:
  static options settings() { return with_workers(GetParam()); }
};

// Far more than the kernel buffers, so both sides wait for each other.
TEST_P(io_on, streams_arrive_whole) {
  runtime rt(settings());
  rt.run([] {
    for (const bool sockets : {false, true}) {
      pair p(sockets);
      constexpr std::size_t total = 3'000'000;
      std::vector<unsigned char> sent(total);
      std::iota(sent.begin(), sent.end(), static_cast<unsigned char>(0));
      thread writer([&] {
        for (std::size_t done = 0; done < total;) {
          const ssize_t n = io::write(p.end[1], sent.data() + done, total - done);
          ASSERT_GT(n, 0) << std::strerror(errno);
          done += static_cast<std::size_t>(n);
        }
      });
      std::vector<unsigned char> got(total);
      for (std::size_t done = 0; done < total;) {
        const ssize_t n = io::read(p.end[0], got.data() + done, total - done);
        ASSERT_GT(n, 0) << std::strerror(errno);
        done += static_cast<std::size_t>(n);
      }
      writer.join();
      EXPECT_TRUE(sent == got);
    }
  });
}

TEST_P(io_on, many_threads_wait_for_one_another) {
  runtime rt(settings());
  rt.run([] {
    constexpr std::size_t count = 100;
    std::vector<pair> pairs;
    pairs.reserve(count);
    for (std::size_t i = 0; i < count; ++i) pairs.emplace_back(true);
    std::vector<thread> threads;
    // A ring: each passes on what it reads, plus one.
    for (std::size_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        int value = 0;
        ASSERT_EQ(io::read(pairs[i].end[0], &value, sizeof value), 4);
        ++value;
        if (i + 1 < count) {
          ASSERT_EQ(io::write(pairs[i + 1].end[1], &value, sizeof value), 4);
        } else {
          EXPECT_EQ(value, static_cast<int>(count));
        }
      });
    }
    const int zero = 0;
    ASSERT_EQ(io::write(pairs[0].end[1], &zero, sizeof zero), 4);
    for (thread& t : threads) t.join();
  });
}

TEST_P(io_on, reader_and_writer_of_one_descriptor) {
  runtime rt(settings());
  rt.run([] {
    pair p(true);
    const std::string big(2'000'000, 'w');
    thread writer({.name = "writer"}, [&] {
      for (std::size_t done = 0; done < big.size();) {
        const ssize_t n = io::send(p.end[0], big.data() + done, big.size() - done, 0);
        ASSERT_GT(n, 0);
        done += static_cast<std::size_t>(n);
      }
    });
    thread reader({.name = "reader"}, [&] {
      char c = 0;
      EXPECT_EQ(io::recv(p.end[0], &c, 1, 0), 1);
      EXPECT_EQ(c, 'r');
    });
    (void)text_when("writer", "waiting for file descriptor");
    (void)text_when("reader", "waiting for file descriptor");
    std::vector<char> buffer(big.size());
    EXPECT_EQ(io::send(p.end[1], "r", 1, 0), 1);
    for (std::size_t done = 0; done < big.size();) {
      const ssize_t n = io::recv(p.end[1], buffer.data(), buffer.size(), 0);
      ASSERT_GT(n, 0);
      done += static_cast<std::size_t>(n);
    }
    writer.join();
    reader.join();
  });
}

TEST_P(io_on, connections_are_accepted) {
  runtime rt(settings());
  rt.run([] {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), bytes), 0);
    ASSERT_EQ(listen(listener, 16), 0);
    ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
    thread server({.name = "server"}, [&] {
      const int fd = io::accept(listener, nullptr, nullptr);
      ASSERT_GE(fd, 0);
      char text[6] = {};
      EXPECT_EQ(io::recv(fd, text, 5, 0), 5);
      EXPECT_STREQ(text, "hello");
      close(fd);
    });
    (void)text_when("server", "waiting for file descriptor");
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(io::connect(fd, reinterpret_cast<sockaddr*>(&address), bytes), 0) << errno;
    EXPECT_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, 0) << "its flags are as before";
    EXPECT_EQ(io::send(fd, "hello", 5, 0), 5);
    server.join();
    close(fd);
    close(listener);
  });
}

TEST_P(io_on, deadlines_pass_and_bad_descriptors_are_told) {
  runtime rt(settings());
  rt.run([] {
    pair p(false);
    char c = 0;
    EXPECT_EQ(io::read(p.end[0], &c, 1, 5ms), -1);
    EXPECT_EQ(errno, ETIMEDOUT);
    EXPECT_EQ(io::read(-1, &c, 1), -1);
    EXPECT_EQ(errno, EBADF);
    EXPECT_EQ(io::wait(p.end[1], POLLOUT), POLLOUT);
    close(p.end[1]);
    EXPECT_EQ(io::read(p.end[0], &c, 1), 0) << "the other end is closed";
    p.end[1] = -1;
  });
}

// Some pass between giving up the stack and handing the wait to epoll.
TEST_P(io_on, deadlines_pass_at_every_moment) {
  runtime rt(settings());
  rt.run([] {
    pair p(false);
    std::vector<thread> waiters;
    for (int t = 0; t < 3; ++t) {
      waiters.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) {
          EXPECT_EQ(io::wait(p.end[0], POLLIN, std::chrono::microseconds(i % 40)), -1);
        }
      });
    }
    for (thread& w : waiters) w.join();
    EXPECT_EQ(write(p.end[1], "x", 1), 1);
    EXPECT_EQ(io::wait(p.end[0], POLLIN), POLLIN);
  });
}

TEST_P(io_on, files_are_always_ready) {
  runtime rt(settings());
  rt.run([] {
    const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    std::array<char, 4> magic{};
    EXPECT_EQ(io::read(fd, magic.data(), 4), 4);
    EXPECT_EQ(magic[1], 'E');
    close(fd);
  });
}

INSTANTIATE_TEST_SUITE_P(workers, io_on, testing::Values(1U, 2U, 4U));

TEST(io, outside_a_runtime_it_blocks) {
  pair p(false);
  char c = 0;
  EXPECT_EQ(io::write(p.end[1], "y", 1), 1);
  EXPECT_EQ(io::read(p.end[0], &c, 1), 1);
  EXPECT_EQ(io::read(p.end[0], &c, 1, 2ms), -1);
  EXPECT_EQ(errno, ETIMEDOUT);
}

}  // namespace
}  // namespace strata::test
