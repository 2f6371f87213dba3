// SPDX-License-Identifier: Apache-2.0
// Two connected sockets over loopback, with nothing of Strata in it.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "bench/common/measure.hpp"

namespace bench {

// TCP, Nagle off.
inline void connect_pair(int fds[2]) {
  const int door = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* const where = reinterpret_cast<sockaddr*>(&at);
  fds[0] = ::socket(AF_INET, SOCK_STREAM, 0);
  if (door < 0 || fds[0] < 0 || ::bind(door, where, sizeof at) != 0 || ::listen(door, 1) != 0 ||
      ::getsockname(door, where, &size) != 0 || ::connect(fds[0], where, sizeof at) != 0 ||
      (fds[1] = ::accept(door, nullptr, nullptr)) < 0) {
    arguments::refuse("cannot connect over loopback");
  }
  const int on = 1;
  for (int i = 0; i < 2; ++i) ::setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// UDP. Each has a receive buffer of so many bytes, or of as many as the system allows.
inline void connect_datagram_pair(int fds[2], int buffer_bytes) {
  sockaddr_in at[2]{};
  const auto where = [&](int i) { return reinterpret_cast<sockaddr*>(&at[i]); };
  bool good = true;
  for (int i = 0; i < 2; ++i) {
    at[i].sin_family = AF_INET;
    at[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at[i];
    fds[i] = ::socket(AF_INET, SOCK_DGRAM, 0);
    good = good && fds[i] >= 0 && ::bind(fds[i], where(i), size) == 0 &&
           ::getsockname(fds[i], where(i), &size) == 0 &&
           ::setsockopt(fds[i], SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof buffer_bytes) == 0;
  }
  for (int i = 0; i < 2; ++i) good = good && ::connect(fds[i], where(1 - i), sizeof at[1 - i]) == 0;
  if (!good) arguments::refuse("cannot connect datagrams over loopback");
}

}  // namespace bench
