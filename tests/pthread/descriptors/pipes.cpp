// SPDX-License-Identifier: Apache-2.0
// Pipes, with names and without: whole writes, parts, and who reads what.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "parts.hpp"
#include "support.hpp"

namespace descriptors {

void ring() {
  constexpr std::size_t threads = 16;
  constexpr int rounds = 100;
  std::vector<a_pipe> links(threads);
  std::vector<std::thread> all;
  long sum = 0;  // of who has the token
  for (std::size_t i = 0; i < threads; ++i)
    all.emplace_back([&, i] {
      for (int round = 0; round < rounds; ++round) {
        int token = 0;
        SAME(read(links[i].in, &token, sizeof token), sizeof token);
        sum += ++token;
        SAME(write(links[(i + 1) % threads].out, &token, sizeof token), sizeof token);
      }
    });
  const int first = 0;
  SAME(write(links[0].out, &first, sizeof first), sizeof first);
  for (std::thread& t : all) t.join();
  const long last = static_cast<long>(threads) * rounds;
  SAME(sum, last * (last + 1) / 2);
}

// One call writes all of it.
template <class Write>
static void goes_through(ends& way, Write write_to) {
  const std::vector<char> sent = message_of(much);
  std::vector<char> got;
  beside([&] { got = read_to_end(way.in); },
         [&] {
           SAME(write_to(way.out, sent), much);
           way.close_out();
         });
  SAME(got == sent, true);
}

ssize_t by_write(int fd, const std::vector<char>& all) { return write(fd, all.data(), all.size()); }
// In many parts, of which some are empty.
static ssize_t by_writev(int fd, const std::vector<char>& all) {
  std::vector<iovec> parts;
  auto* const from = const_cast<char*>(all.data());
  for (std::size_t at = 0; at < all.size(); at += 7'777) {
    parts.push_back({from + at, std::min<std::size_t>(7'777, all.size() - at)});
    parts.push_back({from, 0});
  }
  return writev(fd, parts.data(), static_cast<int>(parts.size()));
}
static ssize_t by_send(int fd, const std::vector<char>& all) {
  return send(fd, all.data(), all.size(), MSG_NOSIGNAL);
}

void large_writes() {
  for (const auto way : {&by_write, &by_writev}) {
    a_pipe p;
    goes_through(p, way);
    a_socketpair s;
    goes_through(s, way);
  }
  a_socketpair s;
  goes_through(s, &by_send);
}

// Of a kind that the kernel may not be asked about without waiting.
void named_pipe() {
  std::string folder = "/tmp/strata-test-XXXXXX";
  SAME(mkdtemp(folder.data()) != nullptr, true);
  const std::string name = folder + "/fifo";
  SAME(mkfifo(name.c_str(), 0600), 0);
  const int reads = open(name.c_str(), O_RDONLY | O_NONBLOCK);
  const int writes = open(name.c_str(), O_WRONLY);
  SAME(fcntl(reads, F_SETFL, 0), 0);
  ends fifo(reads, writes);
  beside([&] { SAME(get(fifo.in), 'f'); }, [&] { put(fifo.out, 'f'); });
  goes_through(fifo, &by_write);
  unlink(name.c_str());
  rmdir(folder.c_str());
}

void parts() {
  a_pipe p;
  std::array<char, 3> a{};
  std::array<char, 10> b{};
  const std::array<iovec, 2> to{{{a.data(), a.size()}, {b.data(), b.size()}}};
  beside([&] { SAME(readv(p.in, to.data(), 2), 5); }, [&] { SAME(write(p.out, "12345", 5), 5); });
  SAME(std::memcmp(a.data(), "123", 3), 0);
  SAME(std::memcmp(b.data(), "45", 2), 0);
  SAME(read(p.in, a.data(), 0), 0);
  p.close_out();
  SAME(read(p.in, a.data(), 1), 0);
  SAME(read(-1, a.data(), 1), -1);
  SAME(errno, EBADF);
  a_pipe q;
  q.close_in();
  signal(SIGPIPE, SIG_IGN);
  SAME(write(q.out, "x", 1), -1);
  SAME(errno, EPIPE);
}

// Many wait for one pipe: each byte is one's.
void many_readers() {
  constexpr int count = 20;
  a_pipe p;
  std::atomic<int> got{0};
  std::vector<std::thread> all;
  for (int i = 0; i < count; ++i)
    all.emplace_back([&] {
      SAME(get(p.in), 'm');
      ++got;
    });
  for (int i = 0; i < count; ++i) {
    while (got < i / 2) sched_yield();
    put(p.out, 'm');
  }
  for (std::thread& t : all) t.join();
  SAME(got, count);
}

void not_to_wait() {
  std::thread([] {
    char c = 0;
    const a_pipe p(O_NONBLOCK);
    SAME(read(p.in, &c, 1), -1);
    SAME(errno, EAGAIN);
    const std::vector<char> all = message_of(much);
    const ssize_t n = write(p.out, all.data(), all.size());
    SAME(n > 0 && n < static_cast<ssize_t>(much), true);
    SAME(write(p.out, all.data(), all.size()), -1);
    SAME(errno, EAGAIN);
    const a_socketpair s;
    SAME(recv(s.in, &c, 1, MSG_DONTWAIT), -1);
    SAME(errno, EAGAIN);
    SAME(recv(p.in, &c, 1, 0), -1);
    SAME(errno, ENOTSOCK);
    SAME(fcntl(s.in, F_SETFL, O_NONBLOCK), 0);
    SAME(recv(s.in, &c, 1, 0), -1);
    SAME(errno, EAGAIN);
    SAME(accept(s.in, nullptr, nullptr), -1);
    SAME(errno, EINVAL);
    // The number of a socket is a pipe's now.
    SAME(dup2(p.out, s.in), s.in);
    SAME(write(s.in, &c, 1), -1);
    SAME(errno, EAGAIN);
  }).join();
}

}  // namespace descriptors
