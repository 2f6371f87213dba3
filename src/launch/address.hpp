// SPDX-License-Identifier: Apache-2.0
// Where a node of a job is reached.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace strata::launch {

using node_id = std::uint16_t;
using job_key = std::array<std::uint8_t, 32>;

struct address {
  std::string host{};  // numeric
  std::uint16_t port = 0;
  std::string worker{};  // what UCX calls an address, or the nonce of UDP sockets; may be empty
  // Where it is reached on each of the networks that the user has named, in their order; neither
  // port nor worker: it is not on that one. Empty: at `host`.
  struct door {
    std::string host{};
    std::uint16_t port = 0;
    std::uint32_t megabits = 0;    // a second, of the interface; 0: unknown
    std::uint16_t spare_port = 0;  // the same for spare connections; may be none
    std::string worker{};
    std::string spare_worker{};
  };
  std::vector<door> doors{};
};

}  // namespace strata::launch
