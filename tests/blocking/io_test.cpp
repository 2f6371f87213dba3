// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "../common/thread_states.hpp"
#include "../sched/support.hpp"
#include "strata/blocking.hpp"
#include "strata/fiber.hpp"
#include "strata/thread.hpp"
#include "threads/errno_here.hpp"

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

TEST_P(io_on, connections_are_accepted) {
  runtime rt(settings());
  rt.run([] {
    const listener at;
    thread server({.name = "server"}, [&] {
      const int fd = io::accept(at.fd, nullptr, nullptr);
      ASSERT_GE(fd, 0);
      EXPECT_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0) << "as accept() has it";
      EXPECT_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
      char text[6] = {};
      EXPECT_EQ(io::recv(fd, text, 5, 0), 5);
      EXPECT_STREQ(text, "hello");
      close(fd);
    });
    (void)text_when("server", "waiting for file descriptor");
    const int fd = at.connected();
    EXPECT_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, 0) << "its flags are as before";
    EXPECT_EQ(io::send(fd, "hello", 5, 0), 5);
    server.join();
    close(fd);
    const int another = at.connected();
    sockaddr_in peer{};
    socklen_t bytes = sizeof peer;
    const int accepted = io::accept4(at.fd, reinterpret_cast<sockaddr*>(&peer), &bytes,
                                     SOCK_CLOEXEC | SOCK_NONBLOCK);
    EXPECT_NE(fcntl(accepted, F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(fcntl(accepted, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_EQ(bytes, sizeof peer);
    EXPECT_EQ(peer.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    for (const int one : {another, accepted}) close(one);
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

// The two ends of something from which several threads read bytes.
struct source {
  const char* what;
  int to = -1, from = -1;
};

source pipe_source() {
  std::array<int, 2> ends{-1, -1};
  EXPECT_EQ(pipe(ends.data()), 0);
  return {"pipe", ends[1], ends[0]};
}

// The kernel cannot be asked not to wait for it. -1: there are none here.
source terminal_source() {
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

TEST_P(io_on, nobody_waits_for_what_cannot_come) {
  runtime rt(settings());
  rt.run(&expect_no_wait_for_what_cannot_come);
}

// A socket for datagrams on this host, and where it is.
int bound(sockaddr_in& at) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&at), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size), 0);
  return fd;
}

// The kernel then calls the socket ready, whatever it is asked for.
TEST_P(io_on, an_error_in_the_queue_of_a_socket_stops_nobody) {
  runtime rt(settings());
  rt.run([] {
    sockaddr_in nobody;
    close(bound(nobody));
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    ASSERT_EQ(setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof on), 0);
    ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&nobody), sizeof nobody), 0);
    ASSERT_EQ(io::send(fd, "x", 1, 0), 1);
    EXPECT_EQ(io::wait(fd, POLLIN) & POLLERR, POLLERR);
    char c = 0;
    EXPECT_EQ(io::recv(fd, &c, 1, 0), -1);
    EXPECT_EQ(detail::errno_here(), ECONNREFUSED) << "which is told once";
    std::atomic<bool> other_ran{false};
    thread other([&] { other_ran = true; });
    EXPECT_EQ(io::recv(fd, &c, 1, 0, 100ms), -1);
    EXPECT_EQ(detail::errno_here(), ETIMEDOUT);
    if (GetParam() == 1) {
      EXPECT_TRUE(other_ran);
    }
    other.join();
    EXPECT_EQ(io::wait(fd, POLLIN), POLLERR) << "it is still there";
    close(fd);
  });
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

TEST_P(io_on, messages_know_their_sender) {
  runtime rt(settings());
  rt.run([] {
    sockaddr_in client_at, server_at;
    const int client = bound(client_at);
    const int server = bound(server_at);
    thread echo({.name = "echo"}, [&] {
      char text[8] = {};
      sockaddr_in peer{};
      socklen_t size = sizeof peer;
      EXPECT_EQ(
          io::recvfrom(server, text, sizeof text, 0, reinterpret_cast<sockaddr*>(&peer), &size), 5);
      EXPECT_EQ(peer.sin_port, client_at.sin_port);
      // In two parts, to that address.
      std::array<iovec, 2> parts{{{text, 5}, {text, 2}}};
      msghdr message{};
      message.msg_name = &peer;
      message.msg_namelen = size;
      message.msg_iov = parts.data();
      message.msg_iovlen = parts.size();
      EXPECT_EQ(io::sendmsg(server, &message, 0), 7);
    });
    (void)text_when("echo", "waiting for file descriptor");
    EXPECT_EQ(io::sendto(client, "hello", 5, 0, reinterpret_cast<sockaddr*>(&server_at),
                         sizeof server_at),
              5);
    char text[8] = {};
    sockaddr_in peer{};
    iovec all{text, sizeof text};
    msghdr message{};
    message.msg_name = &peer;
    message.msg_namelen = sizeof peer;
    message.msg_iov = &all;
    message.msg_iovlen = 1;
    EXPECT_EQ(io::recvmsg(client, &message, 0), 7);
    EXPECT_STREQ(text, "hellohe");
    EXPECT_EQ(peer.sin_port, server_at.sin_port);
    echo.join();
    EXPECT_EQ(io::recvmsg(client, &message, 0, 2ms), -1);
    EXPECT_EQ(detail::errno_here(), ETIMEDOUT);
    for (const int fd : {client, server}) close(fd);
  });
}

// poll() of the sender says that there is room.
TEST_P(io_on, nobody_waits_for_the_room_of_a_local_receiver) {
  runtime rt(settings());
  rt.run([] {
    const int receiver = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const int sender = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    socklen_t size = sizeof at;
    // The kernel finds a name.
    ASSERT_EQ(bind(receiver, reinterpret_cast<sockaddr*>(&at), sizeof(sa_family_t)), 0);
    ASSERT_EQ(getsockname(receiver, reinterpret_cast<sockaddr*>(&at), &size), 0);
    ssize_t n = 0;
    while (n >= 0) n = io::sendto(sender, "x", 1, 0, reinterpret_cast<sockaddr*>(&at), size, 50ms);
    EXPECT_EQ(detail::errno_here(), EAGAIN);
    for (const int fd : {receiver, sender}) close(fd);
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

struct connects_in_a_fiber : threaded {
  int fd;
  const sockaddr_in* to;
  bool* was_refused;
  void start() {
    try {
      (void)io::connect(fd, reinterpret_cast<const sockaddr*>(to), sizeof *to);
    } catch (const misuse_error&) {
      *was_refused = true;
    }
    terminate();
  }
};

// Who may not wait for the other side leaves the socket as it was.
TEST_P(io_on, a_connection_that_a_fiber_begins_changes_no_flags) {
  const listener full(0);
  runtime rt(settings());
  // A few fill it: what comes then waits for room.
  std::vector<int> clients;
  bool was_refused = false;
  for (int i = 0; i < 20 && !was_refused; ++i) {
    const int client = clients.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    rt.run([&] { token<connects_in_a_fiber>(client, &full.address, &was_refused); });
    rt.wait_idle();
    EXPECT_EQ(fcntl(client, F_GETFL) & O_NONBLOCK, 0);
  }
  EXPECT_TRUE(was_refused);
  for (const int fd : clients) close(fd);
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
