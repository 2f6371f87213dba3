// SPDX-License-Identifier: Apache-2.0
// Sockets: connections, datagrams, what goes along with bytes, and time limits of their own.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "parts.hpp"
#include "support.hpp"

namespace descriptors {

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

// A call waits for as much as the socket says (SO_RCVLOWAT), or has room for.
static void low_water(int family) {
  a_listener server(family, 1);
  const int out = socket(family, SOCK_STREAM, 0);
  SAME(connect(out, server.at(), server.bytes), 0);
  const int in = accept(server.fd, nullptr, nullptr);
  const int least = 3;
  SAME(setsockopt(in, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least), 0);
  std::array<char, 8> got{};
  const auto one_by_one = [&] {
    for (const char c : {'a', 'b', 'c'}) {
      put(out, c);
      let_others_wait();
    }
  };
  beside(
      [&] {
        SAME(recv(in, got.data(), got.size(), 0), 3);
        SAME(std::string(got.data(), 3) == "abc", true);
      },
      one_by_one);
  beside([&] { SAME(read(in, got.data(), got.size()), 3); }, one_by_one);
  beside([&] { SAME(recv(in, got.data(), 2, 0), 2); }, one_by_one);
  SAME(recv(in, got.data(), got.size(), MSG_DONTWAIT), 1);
  const timeval little{0, 20'000};
  SAME(setsockopt(in, SOL_SOCKET, SO_RCVTIMEO, &little, sizeof little), 0);
  put(out, 'd');
  takes_its_time(
      [&] { std::thread([&] { SAME(recv(in, got.data(), got.size(), 0), 1); }).join(); });
  close(out);
  SAME(recv(in, got.data(), got.size(), 0), 0);
  close(in);
}

void low_water() {
  low_water(AF_UNIX);
  low_water(AF_INET);
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

static void echo(int family) {
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

void echo_local() { echo(AF_UNIX); }
void echo_inet() { echo(AF_INET); }

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

}  // namespace descriptors
