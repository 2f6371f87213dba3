// SPDX-License-Identifier: Apache-2.0
// strata::io on pipes, files and counters; streams, turns and deadlines.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "../common/denied_calls.hpp"
#include "../common/thread_states.hpp"
#include "../sched/support.hpp"
#include "io_support.hpp"
#include "strata/blocking.hpp"
#include "strata/thread.hpp"
#include "threads/errno_here.hpp"

namespace strata::test {
namespace {

using namespace std::chrono_literals;

std::int64_t processor_ns() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

// A regular file has no urgent bytes, and nobody tells when it would.
TEST_P(io_on, what_a_file_never_has_is_waited_for_without_hurry) {
  runtime rt(settings());
  rt.run([] {
    const int file = memfd_create("strata-test", 0);
    EXPECT_EQ(io::wait(file, POLLIN), POLLIN);
    const std::int64_t before = processor_ns();
    EXPECT_EQ(io::wait(file, POLLPRI, 100ms), -1);
    EXPECT_EQ(detail::errno_here(), ETIMEDOUT);
    EXPECT_LT(processor_ns() - before, 50'000'000);
    close(file);
  });
}

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

// Old kernels do not know the calls that never wait, and containers may be kept from them.
TEST_P(io_on, does_without_calls_that_not_all_have) {
  for (const unsigned code : {ENOSYS, EPERM}) {
    bool denied = false;
    std::thread([&] {
      denied = deny_calls({SYS_preadv2, SYS_pwritev2}, code);
      if (!denied) return;
      runtime rt(settings());
      rt.run([] {
        pair p(false);
        thread writer([&] { EXPECT_EQ(io::write(p.end[1], "abc", 3), 3) << std::strerror(errno); });
        char got[3] = {};
        EXPECT_EQ(io::read(p.end[0], got, sizeof got), 3) << std::strerror(errno);
        EXPECT_EQ(std::string(got, 3), "abc");
        writer.join();
        // Nothing is read and written at once here too, whatever the pipe holds.
        EXPECT_EQ(io::read(p.end[0], got, 0, 1ms), 0) << std::strerror(errno);
        const std::string page(4096, 'a');
        while (io::write(p.end[1], page.data(), page.size(), 1ms) > 0) {
        }
        EXPECT_EQ(io::write(p.end[1], "", 0, 1ms), 0) << std::strerror(errno);
      });
    }).join();
    if (!denied) GTEST_SKIP() << "no filters of system calls here";
  }
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

// Returns once as many threads run at the same time, which takes as many workers. Ready threads
// have to be stolen.
void expect_free_workers(unsigned workers) {
  std::atomic<unsigned> here{0};
  std::vector<thread> all;
  for (unsigned i = 0; i < workers; ++i) {
    all.emplace_back([&] {
      ++here;
      spin_until([&] { return here == workers; });
    });
  }
  for (thread& t : all) t.join();
  EXPECT_EQ(here, workers);
}

constexpr int crowd = scaled(12, 6);

// All see that there is something, one gets it, and no worker waits in the kernel for more.
TEST_P(io_on, one_of_many_who_accept_gets_a_connection) {
  runtime rt(settings());
  rt.run([] {
    const listener at;
    const int copy = dup(at.fd);
    std::atomic<int> accepted{0}, refused{0};
    std::vector<thread> servers;
    for (int i = 0; i < crowd; ++i) {
      servers.emplace_back([&, from = i % 2 == 0 ? at.fd : copy] {
        for (;;) {
          const int fd = io::accept(from, nullptr, nullptr);
          if (fd < 0) break;
          ++accepted;
          close(fd);
        }
        ++refused;
      });
    }
    constexpr int connections = scaled(100, 30);
    for (int n = 1; n <= connections; ++n) {
      const int client = at.connected();
      while (accepted != n) this_thread::yield();
      if (ready_threads_are_stolen()) expect_free_workers(GetParam());
      close(client);
    }
    shutdown(at.fd, SHUT_RDWR);  // nobody gets any more
    for (thread& t : servers) t.join();
    EXPECT_EQ(accepted, connections);
    EXPECT_EQ(refused, crowd);
    close(copy);
  });
}

source pipe_source() {
  std::array<int, 2> ends{-1, -1};
  EXPECT_EQ(pipe(ends.data()), 0);
  return {"pipe", ends[1], ends[0]};
}

TEST_P(io_on, one_of_many_who_read_gets_a_byte) {
  runtime rt(settings());
  rt.run([] {
    for (const source& s : {pipe_source(), terminal_source()}) {
      if (s.from < 0) continue;
      std::array<std::atomic<int>, 256> times{};
      std::atomic<int> got{0};
      std::vector<thread> readers;
      for (int i = 0; i < crowd; ++i) {
        readers.emplace_back([&] {
          for (;;) {
            unsigned char c = 0;
            if (io::read(s.from, &c, 1) != 1 || c == 0) break;
            ++times[c];
            ++got;
          }
        });
      }
      constexpr int bytes = scaled(100, 30);
      for (int n = 1; n <= bytes; ++n) {
        const auto c = static_cast<unsigned char>(n);
        ASSERT_EQ(io::write(s.to, &c, 1), 1) << s.what;
        while (got != n) this_thread::yield();
        if (ready_threads_are_stolen()) expect_free_workers(GetParam());
      }
      // A byte for each of them to end by.
      for (int i = 0; i < crowd; ++i) EXPECT_EQ(io::write(s.to, "", 1), 1);
      for (thread& t : readers) t.join();
      for (int n = 1; n <= bytes; ++n) EXPECT_EQ(times[static_cast<std::size_t>(n)], 1) << s.what;
      for (const int fd : {s.to, s.from}) close(fd);
    }
  });
}

// One that may wait for long has its turn; another gives up.
TEST_P(io_on, deadlines_pass_behind_another) {
  runtime rt(settings());
  rt.run([] {
    const listener at;
    thread first({.name = "first"}, [&] {
      const int fd = io::accept(at.fd, nullptr, nullptr);
      EXPECT_GE(fd, 0);
      close(fd);
    });
    (void)text_when("first", "waiting for file descriptor");
    for (const auto time : {0ms, 2ms}) {
      EXPECT_EQ(io::accept(at.fd, nullptr, nullptr, time), -1);
      EXPECT_EQ(detail::errno_here(), ETIMEDOUT);
    }
    close(at.connected());
    first.join();
    EXPECT_EQ(io::accept(at.fd, nullptr, nullptr, 2ms), -1);
    EXPECT_EQ(detail::errno_here(), ETIMEDOUT);
  });
}

// Two that have nothing in common but what the kernel calls their file.
TEST_P(io_on, event_counters_do_not_wait_for_each_other) {
  runtime rt(settings());
  rt.run([] {
    const int one = eventfd(0, EFD_CLOEXEC);
    const int two = eventfd(0, EFD_CLOEXEC);
    std::uint64_t first = 0;
    thread waits({.name = "waits"}, [&] {
      EXPECT_EQ(io::read(one, &first, sizeof first), static_cast<ssize_t>(sizeof first));
    });
    (void)text_when("waits", "waiting for file descriptor");
    std::uint64_t second = 7;
    EXPECT_EQ(io::write(two, &second, sizeof second), static_cast<ssize_t>(sizeof second));
    second = 0;
    EXPECT_EQ(io::read(two, &second, sizeof second), static_cast<ssize_t>(sizeof second));
    EXPECT_EQ(second, 7U);
    EXPECT_EQ(io::write(one, &second, sizeof second), static_cast<ssize_t>(sizeof second));
    waits.join();
    EXPECT_EQ(first, 7U);
    for (const int fd : {one, two}) close(fd);
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

// What the system says of each at once, whatever the time.
void expect_no_wait_for_what_cannot_come() {
  const auto says = [](int error, const char* of, auto call) {
    EXPECT_EQ(call(), -1) << of;
    EXPECT_EQ(detail::errno_here(), error) << of;
  };
  const auto accepting = [](int fd) {
    return [fd] { return io::accept(fd, nullptr, nullptr, 50ms); };
  };
  for (const int none : {-1, INT_MAX}) {
    says(EBADF, "accept of no descriptor", accepting(none));
    says(EBADF, "wait for no descriptor", [none] { return io::wait(none, POLLIN, 50ms); });
  }
  const pair pipe_ends(false), connected(true);
  const int datagrams = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int stream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  says(ENOTSOCK, "accept of a pipe", accepting(pipe_ends.end[0]));
  says(EINVAL, "accept of a connection", accepting(connected.end[0]));
  says(EOPNOTSUPP, "accept of a socket for datagrams", accepting(datagrams));
  says(EINVAL, "accept of a socket that does not listen", accepting(stream));
  char c = 0;
  says(EAGAIN, "receive of an error, of which there is none",
       [&] { return io::recv(datagrams, &c, 1, MSG_ERRQUEUE, 50ms); });
  says(EAGAIN, "receive of an error where there can be none",
       [&] { return io::recv(connected.end[0], &c, 1, MSG_ERRQUEUE, 50ms); });
  for (const int fd : {datagrams, stream}) close(fd);
}

// As the locks: in units of which there are more than of nanoseconds, or in parts of them.
TEST_P(io_on, any_duration_is_a_timeout) {
  runtime rt(settings());
  rt.run([] {
    pair p(false);
    char c = 0;
    EXPECT_EQ(io::read(p.end[0], &c, 1, std::chrono::duration<double>(1e-3)), -1);
    EXPECT_EQ(io::read(p.end[0], &c, 1, std::chrono::hours::min()), -1);
    thread reader({.name = "reader"}, [&] {
      EXPECT_EQ(io::read(p.end[0], &c, 1, std::chrono::hours::max()), 1);
      EXPECT_EQ(io::wait(p.end[1], POLLOUT, std::chrono::duration<float>(1e30F)), POLLOUT);
    });
    this_thread::yield();
    EXPECT_EQ(io::write(p.end[1], "x", 1, std::chrono::years::max()), 1);
    reader.join();
  });
}

TEST_P(io_on, nobody_waits_for_what_cannot_come) {
  runtime rt(settings());
  rt.run(&expect_no_wait_for_what_cannot_come);
}

// By the time that a wait ends, its descriptor's number may be another file's that somebody waits
// for.
TEST_P(io_on, a_wait_that_ends_leaves_that_of_another_file_alone) {
  runtime rt(settings());
  rt.run([] {
    pair first(false), second(false);
    const int number = first.end[0];
    std::atomic<bool> is_over{false};
    thread earlier({.name = "earlier"}, [&] {
      EXPECT_EQ(io::wait(number, POLLIN, 50ms), -1);
      EXPECT_EQ(detail::errno_here(), ETIMEDOUT);
      is_over = true;
    });
    while (!is_over && !is_now("earlier", "waiting for file descriptor")) this_thread::yield();
    EXPECT_EQ(dup2(second.end[0], number), number);
    thread later({.name = "later"}, [&] { EXPECT_EQ(io::wait(number, POLLIN), POLLIN); });
    (void)text_when("later", "waiting for file descriptor");
    earlier.join();
    EXPECT_EQ(write(second.end[1], "x", 1), 1);
    later.join();
  });
}

TEST_P(io_on, all_is_written) {
  runtime rt(settings());
  rt.run([] {
    const std::string sent(3'000'000, 'a');
    for (const bool sockets : {false, true}) {
      pair p(sockets);
      thread writer([&] {
        const std::size_t n = sockets
                                  ? io::send_all(p.end[1], sent.data(), sent.size(), MSG_NOSIGNAL)
                                  : io::write_all(p.end[1], sent.data(), sent.size());
        EXPECT_EQ(n, sent.size());
        close(std::exchange(p.end[1], -1));
      });
      std::string got;
      std::array<char, 65536> some;
      for (ssize_t n = 1; n > 0;) {
        n = io::read(p.end[0], some.data(), some.size());
        if (n > 0) got.append(some.data(), static_cast<std::size_t>(n));
      }
      writer.join();
      EXPECT_TRUE(got == sent);
    }
    // As far as there is room, and time; or somebody there.
    pair p(true);
    const std::size_t some = io::write_all(p.end[1], sent.data(), sent.size(), 5ms);
    EXPECT_EQ(detail::errno_here(), ETIMEDOUT);
    EXPECT_GT(some, 0U);
    EXPECT_LT(some, sent.size());
    close(std::exchange(p.end[0], -1));
    EXPECT_EQ(io::send_all(p.end[1], sent.data(), sent.size(), MSG_NOSIGNAL), 0U);
    EXPECT_EQ(detail::errno_here(), EPIPE);
  });
}

TEST_P(io_on, to_read_nothing_takes_nothing) {
  runtime rt(settings());
  rt.run([] {
    for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
      std::array<int, 2> end{};
      ASSERT_EQ(socketpair(AF_UNIX, type, 0, end.data()), 0);
      char c = 0;
      EXPECT_EQ(io::read(end[0], &c, 0), 0);
      EXPECT_EQ(io::write(end[1], "x", 1), 1);
      EXPECT_EQ(io::read(end[0], &c, 0), 0);
      EXPECT_EQ(io::read(end[0], &c, 1), 1);
      for (const int fd : end) close(fd);
    }
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

TEST(io, outside_a_runtime_nobody_waits_for_what_cannot_come) {
  expect_no_wait_for_what_cannot_come();
}

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
