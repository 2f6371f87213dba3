// SPDX-License-Identifier: Apache-2.0
// Connected sockets without a handshake, for tests of what comes after it.
#pragma once
#include <poll.h>

#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "net/tcp/socket.hpp"
#include "os/descriptor.hpp"

namespace strata::net::test {

// Two ends of one TCP connection over loopback.
inline std::pair<os::descriptor, os::descriptor> tcp_pair(std::size_t buffer_bytes = 0) {
  const tcp::listener at("127.0.0.1", 0, buffer_bytes);
  os::descriptor first = tcp::connect_to(at.address(), buffer_bytes);
  pollfd waiting{at.get(), POLLIN, 0};
  std::string from;
  for (;;) {
    ::poll(&waiting, 1, -1);
    os::descriptor second = tcp::accept_from(at.get(), from);
    if (second) return {std::move(first), std::move(second)};
  }
}

// connections[i][j] leads from node i to node j.
inline std::vector<std::vector<os::descriptor>> tcp_net(std::size_t nodes,
                                                        std::size_t buffer_bytes = 0) {
  std::vector<std::vector<os::descriptor>> all(nodes);
  for (auto& of_node : all) of_node.resize(nodes);
  for (std::size_t i = 0; i < nodes; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      std::tie(all[i][j], all[j][i]) = tcp_pair(buffer_bytes);
    }
  }
  return all;
}

}  // namespace strata::net::test
