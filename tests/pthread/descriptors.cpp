// SPDX-License-Identifier: Apache-2.0
// A program whose threads wait for each other through descriptors: natively, and as it is under
// `strata pthread` with one worker, where each of these waits would be for ever if it stopped the
// worker. Status 0 if all is right.
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<int> wrong{0};

void same_(long got, long wanted, const char* what, int line) {
  if (got != wanted && wrong.fetch_add(1) < 10)
    std::printf("wrong: line %d: %s is %ld, not %ld (errno %d)\n", line, what, got, wanted, errno);
}
#define SAME(a, b) same_(static_cast<long>(a), static_cast<long>(b), #a, __LINE__)

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

// The others go on as far as they can, where all run on one kernel thread.
void let_others_wait() {
  for (int i = 0; i < 5; ++i) std::thread([] {}).join();
}

void put(int fd, char what = 'x') { SAME(write(fd, &what, 1), 1); }
char get(int fd) {
  char what = 0;
  SAME(read(fd, &what, 1), 1);
  return what;
}

// ---- pipes ----

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

std::vector<char> message_of(std::size_t bytes) {
  std::vector<char> all(bytes);
  for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<char>(i * 7 + i / 251);
  return all;
}

// Until the end, in pieces.
std::vector<char> read_to_end(int fd) {
  std::vector<char> all;
  std::array<char, 1000> piece{};
  ssize_t n = 0;
  while ((n = read(fd, piece.data(), piece.size())) > 0)
    all.insert(all.end(), piece.begin(), piece.begin() + n);
  SAME(n, 0);
  return all;
}

constexpr std::size_t much = 300'000;  // more than fits

// One call writes all of it.
template <class Write>
void goes_through(ends& way, Write write_to) {
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
ssize_t by_writev(int fd, const std::vector<char>& all) {
  std::vector<iovec> parts;
  auto* const from = const_cast<char*>(all.data());
  for (std::size_t at = 0; at < all.size(); at += 7'777) {
    parts.push_back({from + at, std::min<std::size_t>(7'777, all.size() - at)});
    parts.push_back({from, 0});
  }
  return writev(fd, parts.data(), static_cast<int>(parts.size()));
}
ssize_t by_send(int fd, const std::vector<char>& all) {
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

// ---- sockets ----

void all_of_it() {
  a_socketpair s;
  const std::vector<char> sent = message_of(much);
  std::vector<char> got(much);
  beside([&] { SAME(recv(s.in, got.data(), much, MSG_WAITALL), much); },
         [&] {
           SAME(write(s.out, sent.data(), 1000), 1000);
           sched_yield();
           SAME(write(s.out, sent.data() + 1000, much - 1000), much - 1000);
         });
  SAME(got == sent, true);
  // The end comes first.
  beside([&] { SAME(recv(s.in, got.data(), much, MSG_WAITALL), 3); },
         [&] {
           SAME(write(s.out, "abc", 3), 3);
           s.close_out();
         });
}

// A descriptor goes along with the first of many bytes.
void with_control() {
  a_socketpair s;
  const a_pipe p;
  std::vector<char> bytes = message_of(much);
  beside(
      [&] {
        std::vector<char> got(10);
        iovec to{got.data(), got.size()};
        alignas(cmsghdr) std::array<char, 256> room{};
        msghdr m{};
        m.msg_iov = &to;
        m.msg_iovlen = 1;
        m.msg_control = room.data();
        m.msg_controllen = room.size();
        SAME(recvmsg(s.in, &m, 0), 10);
        const cmsghdr* const c = CMSG_FIRSTHDR(&m);
        SAME(c != nullptr && c->cmsg_type == SCM_RIGHTS, true);
        int passed = -1;
        if (c != nullptr) std::memcpy(&passed, CMSG_DATA(c), sizeof passed);
        put(passed, 'p');
        close(passed);
        SAME(read_to_end(s.in).size(), much - 10);
      },
      [&] {
        iovec from{bytes.data(), bytes.size()};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
        msghdr m{};
        m.msg_iov = &from;
        m.msg_iovlen = 1;
        m.msg_control = room.data();
        m.msg_controllen = room.size();
        cmsghdr* const c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(c), &p.out, sizeof(int));
        SAME(sendmsg(s.out, &m, 0), much);
        s.close_out();
      });
  SAME(get(p.in), 'p');
}

void datagrams() {
  a_socketpair s(SOCK_DGRAM);
  constexpr int count = 300;  // more than the queue takes
  int next = 0;
  beside(
      [&] {
        for (int i = 0; i < count; ++i) {
          int n = -1;
          SAME(recv(s.in, &n, sizeof n, 0), sizeof n);
          SAME(n, next++);
        }
      },
      [&] {
        for (int i = 0; i < count; ++i) SAME(send(s.out, &i, sizeof i, 0), sizeof i);
      });
  // Not connected: the kernel calls the sender ready whether or not the addressee has room.
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text = "strata-test-" + std::to_string(getpid());
  std::memcpy(name.sun_path + 1, text.data(), text.size());
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  const ends both(socket(AF_UNIX, SOCK_DGRAM, 0), socket(AF_UNIX, SOCK_DGRAM, 0));
  const auto* const to = reinterpret_cast<const sockaddr*>(&name);
  SAME(bind(both.in, to, bytes), 0);
  beside(
      [&] {
        for (int i = 0; i < count; ++i)
          SAME(sendto(both.out, &i, sizeof i, 0, to, bytes), sizeof i);
      },
      [&] {
        for (int i = 0; i < count; ++i) {
          int n = -1;
          SAME(recvfrom(both.in, &n, sizeof n, 0, nullptr, nullptr), sizeof n);
          SAME(n, i);
        }
      });
}

void several_messages() {
  a_socketpair s(SOCK_DGRAM);
  constexpr unsigned count = 100;
  std::array<int, count> sent{};
  std::array<int, count> got{};
  std::array<iovec, count> from{};
  std::array<iovec, count> to{};
  std::array<mmsghdr, count> out{};
  std::array<mmsghdr, count> in{};
  for (unsigned i = 0; i < count; ++i) {
    sent[i] = static_cast<int>(i * i);
    from[i] = {&sent[i], sizeof(int)};
    to[i] = {&got[i], sizeof(int)};
    out[i].msg_hdr.msg_iov = &from[i];
    in[i].msg_hdr.msg_iov = &to[i];
    out[i].msg_hdr.msg_iovlen = in[i].msg_hdr.msg_iovlen = 1;
  }
  beside([&] { SAME(recvmmsg(s.in, in.data(), count, 0, nullptr), count); },
         [&] { SAME(sendmmsg(s.out, out.data(), count, 0), count); });
  SAME(got == sent, true);
  beside(
      [&] {
        const int n = recvmmsg(s.in, in.data(), count, MSG_WAITFORONE, nullptr);
        SAME(n, 1);
      },
      [&] { SAME(send(s.out, "1234", 4, 0), 4); });
}

// ---- connections ----

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

void echo(int family) {
  constexpr int clients = 12;
  constexpr int words = 20;
  a_listener server(family, 2);
  std::vector<std::thread> all;
  for (int i = 0; i < clients; ++i) {
    all.emplace_back([&, i] {
      const int fd = i % 2 == 0 ? accept(server.fd, nullptr, nullptr)
                                : accept4(server.fd, nullptr, nullptr, SOCK_CLOEXEC);
      SAME(fd >= 0, true);
      std::array<char, 64> word{};
      ssize_t n = 0;
      while ((n = recv(fd, word.data(), word.size(), 0)) > 0)
        SAME(send(fd, word.data(), static_cast<std::size_t>(n), 0), n);
      SAME(n, 0);
      close(fd);
    });
    all.emplace_back([&] {
      const int fd = socket(family, SOCK_STREAM, 0);
      SAME(connect(fd, server.at(), server.bytes), 0);
      for (int w = 0; w < words; ++w) {
        int back = -1;
        SAME(write(fd, &w, sizeof w), sizeof w);
        SAME(recv(fd, &back, sizeof back, MSG_WAITALL), sizeof back);
        SAME(back, w);
      }
      close(fd);
    });
  }
  for (std::thread& t : all) t.join();
}

// ---- times ----

std::int64_t now_ms() {
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

void timeouts() {
  std::thread([] {
    char c = 0;
    const a_socketpair s;
    const timeval little{0, 20'000};
    SAME(setsockopt(s.in, SOL_SOCKET, SO_RCVTIMEO, &little, sizeof little), 0);
    SAME(setsockopt(s.out, SOL_SOCKET, SO_SNDTIMEO, &little, sizeof little), 0);
    takes_its_time([&] {
      SAME(recv(s.in, &c, 1, 0), -1);
      SAME(errno, EAGAIN);
    });
    takes_its_time([&] {
      SAME(read(s.in, &c, 1), -1);
      SAME(errno, EAGAIN);
    });
    const std::vector<char> all = message_of(much);
    takes_its_time([&] {
      const ssize_t n = write(s.out, all.data(), much);
      SAME(n > 0 && n < static_cast<ssize_t>(much), true);
    });
    takes_its_time([&] {
      SAME(write(s.out, all.data(), much), -1);
      SAME(errno, EAGAIN);
    });
    a_listener server(AF_UNIX, 1);
    SAME(setsockopt(server.fd, SOL_SOCKET, SO_RCVTIMEO, &little, sizeof little), 0);
    takes_its_time([&] {
      SAME(accept(server.fd, nullptr, nullptr), -1);
      SAME(errno, EAGAIN);
    });
  }).join();
}

// ---- many descriptors ----

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

// ---- other kinds ----

void counters_and_timers() {
  const int counter = eventfd(0, 0);
  std::uint64_t n = 0;
  beside(
      [&] {
        SAME(read(counter, &n, sizeof n), sizeof n);
        SAME(n, 5);
      },
      [&] {
        const std::uint64_t five = 5;
        SAME(write(counter, &five, sizeof five), sizeof five);
      });
  const std::uint64_t most = UINT64_MAX - 1;
  SAME(write(counter, &most, sizeof most), sizeof most);
  beside(
      [&] {
        const std::uint64_t one = 1;
        SAME(write(counter, &one, sizeof one), sizeof one);  // when there is room
      },
      [&] { SAME(read(counter, &n, sizeof n), sizeof n); });
  close(counter);
  const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  beside([&] { SAME(read(timer, &n, sizeof n), sizeof n); },
         [&] {
           const itimerspec soon{{0, 0}, {0, 1'000'000}};
           SAME(timerfd_settime(timer, 0, &soon, nullptr), 0);
         });
  SAME(n, 1);
  close(timer);
}

void terminals() {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  SAME(master >= 0, true);
  SAME(grantpt(master), 0);
  SAME(unlockpt(master), 0);
  std::array<char, 64> name{};
  SAME(ptsname_r(master, name.data(), name.size()), 0);
  const ends both(open(name.data(), O_RDWR | O_NOCTTY), master);
  beside(
      [&] {
        std::array<char, 16> line{};
        SAME(read(both.in, line.data(), line.size()), 4);
        SAME(std::memcmp(line.data(), "abc\n", 4), 0);
      },
      [&] {
        SAME(write(both.out, "ab", 2), 2);  // no line yet
        sched_yield();
        SAME(write(both.out, "c\n", 2), 2);
      });
}

void files() {
  std::thread([] {
    const int file = memfd_create("strata-test", 0);
    const std::vector<char> all = message_of(much);
    SAME(write(file, all.data(), much), much);
    SAME(lseek(file, 0, SEEK_SET), 0);
    std::vector<char> got(2 * much);
    errno = 0;
    const int nothing = open("/dev/null", O_RDWR);
    SAME(write(nothing, all.data(), much), much);
    SAME(read(nothing, got.data(), 1), 0);
    close(nothing);
    const int counter = eventfd(1, 0);
    std::uint64_t n = 1;
    SAME(write(counter, &n, sizeof n), sizeof n);
    SAME(read(counter, &n, sizeof n), sizeof n);
    close(counter);
    SAME(errno, 0);
    SAME(read(file, got.data(), got.size()), much);
    SAME(read(file, got.data(), got.size()), 0);
    got.resize(much);
    SAME(got == all, true);
    close(file);
  }).join();
}

void names() {
  std::thread([] {
    passwd found{};
    passwd* result = nullptr;
    std::array<char, 4096> room{};
    SAME(getpwuid_r(0, &found, room.data(), room.size(), &result), 0);
    SAME(result == nullptr || result->pw_uid == 0, true);
    addrinfo* addresses = nullptr;
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    SAME(getaddrinfo("127.0.0.1", "80", &hints, &addresses), 0);
    std::array<char, 64> host{};
    SAME(getnameinfo(addresses->ai_addr, addresses->ai_addrlen, host.data(), host.size(), nullptr,
                     0, NI_NUMERICHOST),
         0);
    SAME(std::strcmp(host.data(), "127.0.0.1"), 0);
    freeaddrinfo(addresses);
    // What comes next waits as ever.
    const a_pipe p;
    beside([&] { SAME(get(p.in), 'n'); }, [&] { put(p.out, 'n'); });
  }).join();
}

// ---- ends of waits ----

// In a thread that is cancelled there; it does not come back.
template <class Waits>
void cancelled(Waits waits) {
  struct state {
    Waits& waits;
    std::atomic<bool> asks{false};
    std::atomic<bool> unwound{false};
  } s{waits, {}, {}};
  pthread_t t{};
  const auto body = [](void* argument) -> void* {
    auto& mine = *static_cast<state*>(argument);
    struct notes {
      std::atomic<bool>& unwound;
      ~notes() { unwound = true; }
    } const note{mine.unwound};
    mine.asks = true;
    mine.waits();
    return nullptr;
  };
  SAME(pthread_create(&t, nullptr, body, &s), 0);
  while (!s.asks) sched_yield();
  sched_yield();
  SAME(pthread_cancel(t), 0);
  void* result = nullptr;
  SAME(pthread_join(t, &result), 0);
  SAME(result == PTHREAD_CANCELED, true);
  SAME(s.unwound, true);
}

void cancellation() {
  const a_pipe p;
  a_listener server(AF_UNIX, 1);
  char c = 0;
  cancelled([&] { (void)!read(p.in, &c, 1); });
  cancelled([&] { accept(server.fd, nullptr, nullptr); });
  cancelled([&] {
    std::array<pollfd, 2> fds{{{p.in, POLLIN, 0}, {server.fd, POLLIN, 0}}};
    poll(fds.data(), fds.size(), -1);
  });
  cancelled([&] {
    fd_set reads;
    FD_ZERO(&reads);
    FD_SET(p.in, &reads);
    select(p.in + 1, &reads, nullptr, nullptr, nullptr);
  });
  cancelled([&] {
    sigset_t none;
    sigemptyset(&none);
    pollfd one{p.in, POLLIN, 0};
    ppoll(&one, 1, nullptr, &none);
  });
  // Also where there is no time to wait.
  cancelled([&] {
    for (;;) {
      pollfd one{p.in, POLLIN, 0};
      poll(&one, 1, 0);
      sched_yield();
    }
  });
  // One of two who wait: the other one gets what comes.
  std::thread other([&] { SAME(get(p.in), 'o'); });
  cancelled([&] { (void)!read(p.in, &c, 1); });
  put(p.out, 'o');
  other.join();
  // Also one that never has to wait.
  cancelled([&] {
    for (;;) {
      put(p.out);
      get(p.in);
      sched_yield();
    }
  });
}

std::atomic<int> handled{0};
void count_one(int) { ++handled; }

// SIGUSR1 to a thread in waits(), until done() says that it need not come again.
template <class Waits, class Done>
void signalled(int flags, Waits waits, Done done) {
  struct sigaction action {};
  action.sa_handler = &count_one;
  action.sa_flags = flags;
  sigaction(SIGUSR1, &action, nullptr);
  handled = 0;
  std::atomic<bool> ended{false};
  std::thread t([&] {
    waits();
    ended = true;
  });
  while (!ended && !done()) {
    pthread_kill(t.native_handle(), SIGUSR1);
    sched_yield();
  }
  t.join();
  SAME(handled > 0, true);
}

void interruption() {
  const a_pipe p;
  const a_socketpair s;
  char c = 0;
  const auto never = [] { return false; };
  const auto interrupted = [](long answer) {
    SAME(answer, -1);
    SAME(errno, EINTR);
  };
  signalled(
      0, [&] { interrupted(read(p.in, &c, 1)); }, never);
  signalled(
      0, [&] { interrupted(recv(s.in, &c, 1, 0)); }, never);
  // Not begun again, whatever the handler wants.
  pollfd one{p.in, POLLIN, 0};
  signalled(
      SA_RESTART, [&] { interrupted(poll(&one, 1, -1)); }, never);
  const timeval long_time{3600, 0};
  SAME(setsockopt(s.in, SOL_SOCKET, SO_RCVTIMEO, &long_time, sizeof long_time), 0);
  signalled(
      SA_RESTART, [&] { interrupted(recv(s.in, &c, 1, 0)); }, never);
  // Behind another one, by who cannot be cancelled.
  std::thread other([&] { SAME(get(p.in), 'b'); });
  signalled(
      0,
      [&] {
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
        interrupted(read(p.in, &c, 1));
      },
      never);
  put(p.out, 'b');
  other.join();
  // Begun again.
  std::atomic<bool> told{false};
  signalled(
      SA_RESTART, [&] { SAME(read(p.in, &c, 1), 1); },
      [&] {
        if (handled < 3) return false;
        if (!told.exchange(true)) put(p.out);
        return true;
      });
  // A part has been written.
  const std::vector<char> all = message_of(much);
  for (const int flags : {0, SA_RESTART}) {
    const a_socketpair full;
    signalled(
        flags,
        [&] {
          const ssize_t n = write(full.out, all.data(), much);
          SAME(n > 0 && n < static_cast<ssize_t>(much), true);
        },
        never);
  }
  // Blocked but while the wait lasts.
  sigset_t usr1;
  sigset_t before;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  SAME(pthread_sigmask(SIG_BLOCK, &usr1, &before), 0);
  signalled(
      0, [&] { interrupted(ppoll(&one, 1, nullptr, &before)); }, never);
  signalled(
      0, [&] { interrupted(pselect(0, nullptr, nullptr, nullptr, nullptr, &before)); }, never);
  SAME(pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
}

// A signal for the process that all threads have blocked but the one that waits.
void signals_for_all() {
  struct sigaction action {};
  action.sa_handler = &count_one;
  sigaction(SIGUSR2, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  const a_pipe p;
  handled = 0;
  beside(
      [&] {
        pollfd one{p.in, POLLIN, 0};
        SAME(ppoll(&one, 1, nullptr, &none), -1);
        SAME(errno, EINTR);
        SAME(handled, 1);
      },
      [] { SAME(kill(getpid(), SIGUSR2), 0); });
}

// A handler may write to what has room, wherever it interrupts.
void handlers() {
  static int nowhere = -1;
  static int counter = -1;
  nowhere = open("/dev/null", O_WRONLY);
  counter = eventfd(0, 0);
  constexpr int enough = 200;
  handled = 0;
  const auto write_to_both = [](int) {
    const int error = errno;
    const std::uint64_t one = 1;
    (void)!write(nowhere, &one, sizeof one);
    (void)!write(counter, &one, sizeof one);
    errno = error;
    ++handled;
  };
  signal(SIGALRM, write_to_both);
  const itimerval often{{0, 200}, {0, 200}};
  SAME(setitimer(ITIMER_REAL, &often, nullptr), 0);
  const auto work = [] {
    while (handled < enough) {
      const a_pipe p;
      const int device = open("/dev/zero", O_RDONLY);
      std::vector<char> some(1000);
      SAME(read(device, some.data(), some.size()), some.size());
      close(device);
      beside([&] { SAME(get(p.in), 'h'); }, [&] { put(p.out, 'h'); });
    }
  };
  std::thread other(work);
  work();
  const itimerval never{};
  SAME(setitimer(ITIMER_REAL, &never, nullptr), 0);
  other.join();
  std::uint64_t n = 0;
  SAME(read(counter, &n, sizeof n), sizeof n);
  SAME(n >= enough, true);
  close(nowhere);
  close(counter);
}

// Who waits when the descriptor is closed waits for the file, as long as that is.
void closed_meanwhile() {
  a_pipe p;
  const int writes = dup(p.out);
  beside(
      [&] {
        char c = 0;
        const ssize_t n = read(p.in, &c, 1);
        SAME(n == 1 || (n < 0 && errno == EBADF), true);  // it may have come too late
      },
      [&] {
        const int reads = p.in;
        const int other = dup(p.in);
        close(reads);
        put(writes);
        SAME(dup2(other, reads), reads);
        close(other);
      });
  close(writes);
}

// Another file gets the number while two wait. Where all of them run on one kernel thread both have
// been waiting by then; elsewhere one may come too late, and waits for the other file.
void replaced_meanwhile() {
  a_pipe p;
  a_pipe fresh;
  const int spare = dup(p.in);
  const int number = p.in;
  const pid_t here = gettid();
  std::atomic<int> asking{0};
  std::atomic<int> others{0};
  std::atomic<bool> is_certain{true};
  std::vector<std::thread> all;
  for (int i = 0; i < 2; ++i)
    all.emplace_back([&] {
      if (gettid() != here) is_certain = false;
      ++asking;
      if (get(number) != 'o') ++others;
    });
  while (asking < 2) sched_yield();
  let_others_wait();
  SAME(dup2(fresh.in, number), number);
  for (int i = 0; i < 2; ++i) {
    put(p.out, 'o');
    put(fresh.out, 'n');
  }
  for (std::thread& t : all) t.join();
  if (is_certain) SAME(others, 0);
  close(spare);
}

// Of a kind that has no name but its number: who reads the new file does not wait for the old one.
void replaced_counters() {
  const int number = eventfd(0, 0);
  const int old = dup(number);
  const int fresh = eventfd(0, EFD_SEMAPHORE);
  std::uint64_t n = 0;
  beside([&] { SAME(read(number, &n, sizeof n), sizeof n); },
         [&] {
           let_others_wait();
           SAME(dup2(fresh, number), number);
           std::uint64_t m = 0;
           beside([&] { SAME(read(number, &m, sizeof m), sizeof m); },
                  [&] {
                    let_others_wait();
                    const std::uint64_t for_both = 2;  // if the other one has come too late
                    SAME(write(number, &for_both, sizeof for_both), sizeof for_both);
                  });
           SAME(m, 1);
           SAME(write(old, &m, sizeof m), sizeof m);
         });
  SAME(n, 1);
  for (const int fd : {number, old, fresh}) close(fd);
}

// The rest of a write goes where it has begun, once that is known by more than its number.
void replaced_while_writing() {
  a_pipe p;
  const int number = p.out;
  const std::vector<char> sent = message_of(much);
  const pid_t here = gettid();
  bool is_certain = false;
  std::atomic<bool> writes{false};
  std::thread writer([&] {
    is_certain = gettid() == here;
    writes = true;
    SAME(write(number, sent.data(), much), much);
  });
  while (!writes) sched_yield();
  // It has begun once something has come.
  std::vector<char> got(1);
  got[0] = get(p.in);
  const int other = memfd_create("strata-test", 0);
  SAME(dup2(other, number), number);
  const std::vector<char> rest = read_to_end(p.in);
  writer.join();
  got.insert(got.end(), rest.begin(), rest.end());
  if (is_certain) {
    SAME(got == sent, true);
    SAME(lseek(other, 0, SEEK_END), 0);
  }
  close(other);
}

// The process's status after f() in a thread of a child.
template <class F>
int status_of_child(F f) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    wrong = 0;
    std::thread(f).join();
    std::fflush(stdout);
    _exit(wrong == 0 ? 0 : 1);
  }
  int status = 0;
  SAME(waitpid(child, &status, 0), child);
  return status;
}

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

}  // namespace

int main(int argc, char** argv) {
  struct part {
    const char* name;
    void (*run)();
  };
  constexpr std::array parts_of_it{
      part{"ring", &ring},
      part{"large_writes", &large_writes},
      part{"named_pipe", &named_pipe},
      part{"parts", &parts},
      part{"many_readers", &many_readers},
      part{"not_to_wait", &not_to_wait},
      part{"all_of_it", &all_of_it},
      part{"with_control", &with_control},
      part{"datagrams", &datagrams},
      part{"several_messages", &several_messages},
      part{"echo_local", [] { echo(AF_UNIX); }},
      part{"echo_inet", [] { echo(AF_INET); }},
      part{"timeouts", &timeouts},
      part{"polls", &polls},
      part{"selects", &selects},
      part{"select_beyond", &select_beyond},
      part{"epolls", &epolls},
      part{"counters_and_timers", &counters_and_timers},
      part{"terminals", &terminals},
      part{"files", &files},
      part{"names", &names},
      part{"cancellation", &cancellation},
      part{"interruption", &interruption},
      part{"signals_for_all", &signals_for_all},
      part{"handlers", &handlers},
      part{"closed_meanwhile", &closed_meanwhile},
      part{"replaced_meanwhile", &replaced_meanwhile},
      part{"replaced_counters", &replaced_counters},
      part{"replaced_while_writing", &replaced_while_writing},
      part{"broken_pipes", &broken_pipes},
      part{"descriptors_of_a_child", &descriptors_of_a_child},
      part{"forked", &forked},
  };
  // Before there are threads.
  sigset_t usr2;
  sigemptyset(&usr2);
  sigaddset(&usr2, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &usr2, nullptr);
  // Arguments: the one to run.
  for (const part& one : parts_of_it) {
    if (argc > 1 && std::strcmp(argv[1], one.name) != 0) continue;
    const int before = wrong;
    one.run();
    std::printf("%s %s\n", wrong == before ? "ok" : "not ok", one.name);
    std::fflush(stdout);
  }
  std::printf("%d wrong\n", wrong.load());
  return wrong == 0 ? 0 : 1;
}
