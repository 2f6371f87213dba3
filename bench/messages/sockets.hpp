// SPDX-License-Identifier: Apache-2.0
// Strata's TCP transport between the two processes of a benchmark, without a launcher.
#pragma once

#include <poll.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/tcp/socket.hpp"
#include "net/tcp/tcp_transport.hpp"

namespace bench {

// Two ends of one connection over loopback.
inline std::pair<strata::os::descriptor, strata::os::descriptor> connected(
    std::size_t buffer_bytes = 0) {
  using namespace strata;
  const net::tcp::listener at("127.0.0.1", 0, buffer_bytes);
  os::descriptor first = net::tcp::connect_to(at.address(), buffer_bytes);
  pollfd waiting{at.get(), POLLIN, 0};
  std::string from;
  for (;;) {
    ::poll(&waiting, 1, -1);
    os::descriptor second = net::tcp::accept_from(at.get(), from);
    if (second) return {std::move(first), std::move(second)};
  }
}

// Node `self` of two.
inline std::unique_ptr<strata::net::tcp::tcp_transport> over_socket(
    strata::os::descriptor s, strata::net::node_id self, const strata::net::tcp::options& o = {}) {
  std::vector<strata::os::descriptor> sockets(2);
  sockets[1U - self] = std::move(s);
  return std::make_unique<strata::net::tcp::tcp_transport>(self, std::move(sockets), o);
}

}  // namespace bench
