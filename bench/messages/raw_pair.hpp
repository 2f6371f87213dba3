// SPDX-License-Identifier: Apache-2.0
// One connection over loopback, Nagle off, with nothing of Strata in it.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "bench/common/measure.hpp"

namespace bench {

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

}  // namespace bench
